"""A sentence pasted with its tree: its plain text is run, its tree is a part; mistakes are said with their line."""

import pytest
from starlette.testclient import TestClient

from headscope.views.wire import decode

ROWS = (("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sat", "VERB", 0, "root"))
TREE = "# text = the cat sat\n" + "\n".join(
    f"{at}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_" for at, (word, tag, head, relation) in enumerate(ROWS, 1)
)


def test_a_pasted_tree_is_run_as_its_text_and_drawn_from_its_part(client: TestClient, run) -> None:
    trace = run(client, TREE)[-1]["trace"]
    about = decode(client.get(f"/api/traces/{trace}/trace").content).props
    assert about["text"] == "the cat sat"
    gold = decode(client.get(f"/api/traces/{trace}/gold").content).props
    assert (gold["forms"], gold["heads"], gold["relations"]) == (
        ["the", "cat", "sat"],
        [1, 2, -1],
        ["det", "nsubj", "root"],
    )
    tree = decode(client.get(f"/api/traces/{trace}/tree/L0H0?way=A").content).props
    assert tree["n_words"] == 3 and tree["heads"].count(-1) == 1
    page = client.post(
        f"/api/traces/{trace}/page", json={"view": "head", "selection": {"scale": "head", "site": "L0", "heads": [0]}}
    )
    assert 'data-key="gold"' in page.text and 'data-key="tree/L0H0?way=A"' in page.text


def test_a_plain_text_has_no_tree(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    assert decode(client.get(f"/api/traces/{trace}/gold").content).props["words"] == []
    page = client.post(
        f"/api/traces/{trace}/page", json={"view": "head", "selection": {"scale": "head", "site": "L0", "heads": [0]}}
    )
    assert 'data-key="gold"' not in page.text


@pytest.mark.parametrize(
    ("text", "error_text"),
    [
        (TREE.replace("\t3\tnsubj", "\t9\tnsubj"), "line 3: the head is '9'"),
        (f"{TREE}\n\n{TREE}", "CoNLL-U of 2 sentences"),
    ],
)
def test_a_tree_that_cannot_be_read_is_refused_with_its_line(
    client: TestClient, run, text: str, error_text: str
) -> None:
    last = run(client, text)[-1]
    assert last["state"] == "failed" and error_text in last["message"]
