"""The report on real models: heads that are known are found, and named for what they do."""

import pytest

import headscope as hs
from headscope.reports import heads


@pytest.fixture(scope="module")
def treebank(shared_data):
    return shared_data / "ud_english_ewt" / "en_ewt-ud-dev.conllu.xz"


def test_the_known_heads_of_the_built_in_gpt_are_found(treebank, tmp_path) -> None:
    report = heads("builtin:gpt", treebank, tmp_path, limit=60, relevance=False, importance=False)
    by_name = {str(head): verdict for head, verdict in report.roles.items()}
    assert by_name["L3H2"].role == "previous token"
    assert {"L4H0", "L4H1"} <= {
        name for name, verdict in by_name.items() if "induction" in [f.role for f in verdict.findings]
    }
    case = report.cases[hs.Head("main", 3, 2)][0]
    assert all(query == key + 1 and weight > 0.9 for query, key, weight in case.pairs)
    subject = report.scores["syntactic/nsubj→dependent"]
    assert subject.above(1)[0][1] > subject.above(1)[0][2] + 0.1


def test_a_sentence_encoder_has_positional_and_syntactic_heads_but_no_answer(
    shared_weights, treebank, tmp_path
) -> None:
    report = heads(str(shared_weights / "all-minilm-l6-v2-fp16"), treebank, tmp_path, limit=60)
    roles = {str(head): verdict.role for head, verdict in report.roles.items()}
    assert roles["L0H2"] == "previous token" and roles["L1H8"] == "next token"
    assert any(role.startswith("syntactic: obj") for role in roles.values())
    assert "no head to explain" in report.about["absent"]["relevance"]
    assert report.about["model"] == "all-minilm-l6-v2-fp16"


def test_baselines_of_the_treebank_lie_where_the_paper_has_them(treebank, tmp_path) -> None:
    """Voita et al. have 35, 41, 72 and 46 % for WMT; UD English PUD gives 33.7, 39.1, 78.4 and 49.2 %."""
    scores = heads("builtin:bert", treebank, tmp_path, limit=300, relevance=False, importance=False).scores
    published = {"nsubj": 0.35, "obj": 0.41, "amod": 0.72, "advmod": 0.46}
    ours = {relation: scores[f"syntactic/{relation}→head"].baseline for relation in published}
    assert all(abs((ours[relation] or 0.0) - value) < 0.08 for relation, value in published.items()), ours
