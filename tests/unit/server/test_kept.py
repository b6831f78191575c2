from headscope.server.kept import Kept


def test_what_nobody_asked_for_the_longest_is_forgotten_first() -> None:
    kept: Kept[str] = Kept(30)
    for key in "abc":
        kept.put(key, key.upper(), 10)
    assert kept.get("a") == "A"
    kept.put("d", "D", 10)
    assert kept.get("b") is None
    assert kept.newest_first() == ["D", "A", "C"] and kept.size == 30


def test_the_newest_stays_however_large() -> None:
    kept: Kept[str] = Kept(30)
    kept.put("a", "A", 10)
    kept.put("b", "B", 100)
    assert kept.newest_first() == ["B"]
    kept.put("c", "C", 1)
    assert kept.newest_first() == ["C"] and kept.size == 1


def test_putting_again_counts_once() -> None:
    kept: Kept[str] = Kept(30)
    kept.put("a", "A", 10)
    kept.put("a", "B", 20)
    assert len(kept) == 1 and kept.size == 20 and kept.get("a") == "B"
