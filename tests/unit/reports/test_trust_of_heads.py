"""Verdicts of a report of trust in the report of heads: beside the roles, of the same model only."""

import json

import pytest
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InputError, LoadError
from headscope.faithfulness import HeadTests
from headscope.reports import HeadsReport, heads
from headscope.reports.report_page import data_of
from headscope.reports.trust_report import TrustReport, trust

TEXTS = ["the cat sat on the mat.", "she gave her sister the book.", "it was tired of the old house."]


@pytest.fixture(scope="module")
def verdicts(gpt: hs.Model, tmp_path_factory: pytest.TempPathFactory) -> TrustReport:
    tests = HeadTests(n_permutations=1, adversary=None)
    return trust(gpt, TEXTS, folder=tmp_path_factory.mktemp("trust"), heads=["L0", "L1H2"], tests=tests)


def test_heads_have_their_verdicts_beside_their_roles(gpt, verdicts, tmp_path) -> None:
    report = heads(gpt, TEXTS, tmp_path / "x", relevance=False, importance=False, trust=verdicts.folder)
    badges = dict(zip(map(str, report.roles), data_of(report)["trust"], strict=True))
    assert {name for name, badge in badges.items() if badge} == {str(head) for head in verdicts.heads}
    tested = verdicts.heads["L1H2"]
    assert badges["L1H2"] == {"verdict": tested.verdict, "sentences": [tested.summary, *tested.sentences]}
    page = report.page.read_text()
    assert "Trust: attention tested on 3 texts of" in page and "(language modelling): 5 not tested." in page
    assert HeadsReport.load(tmp_path / "x").about["trust"]["heads"]["L1H2"]["verdict"] == tested.verdict
    # The same report without: nothing is left of it.
    heads(gpt, TEXTS, tmp_path / "x", relevance=False, importance=False)
    assert json.loads((tmp_path / "x" / "heads.json").read_text())["trust"] is None
    assert "Trust:" not in (tmp_path / "x" / "index.html").read_text()


def test_verdicts_of_other_weights_are_refused_before_anything_is_measured(verdicts, tmp_path) -> None:
    other = FAMILIES["gpt2"].build()
    next(other.parameters()).data[0] += 1.0
    with pytest.raises(InputError, match="with other weights than another: test this model"):
        heads(hs.Model(other, tiny_tokenizer(), name="another"), TEXTS, tmp_path / "x", trust=verdicts)
    with pytest.raises(LoadError, match="there is no report of trust in"):
        heads(hs.Model(other, tiny_tokenizer(), name="another"), TEXTS, tmp_path / "x", trust=tmp_path)
    assert not (tmp_path / "x").exists()
