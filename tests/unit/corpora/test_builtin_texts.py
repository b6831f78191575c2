"""The built-in sentences: enough of them, each once, and what heads look for is in them."""

from headscope.corpora import builtin_sentences


def test_the_builtin_sentences_are_different_texts_with_what_patterns_need() -> None:
    texts = [example.text or "" for example in builtin_sentences()]
    assert len(texts) == len(set(texts)) == 80
    for needed in ('"', "(", "[", " she ", " Mr. ", "red, green, blue, red"):
        assert sum(needed in text for text in texts) >= 1, needed
    assert builtin_sentences().name == "built-in sentences"
