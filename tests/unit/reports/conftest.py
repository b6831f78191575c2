"""A tiny treebank and reports of tiny models over it, made once."""

from pathlib import Path

import pytest
from tiny_models import FAMILIES, tiny_bert_tokenizer, tiny_tokenizer

import headscope as hs
from headscope.reports import HeadsReport, heads

# A word, its tag, its head and its relation.
TREE = (
    ("she", "PRON", 2, "nsubj"), ("gave", "VERB", 0, "root"), ("her", "PRON", 4, "nmod:poss"),
    ("sister", "NOUN", 2, "iobj"), ("the", "DET", 6, "det"), ("book", "NOUN", 2, "obj"), (".", "PUNCT", 2, "punct"),
)  # fmt: skip
OTHER = (
    ("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sat", "VERB", 0, "root"), ("on", "ADP", 6, "case"),
    ("the", "DET", 6, "det"), ("mat", "NOUN", 3, "obl"), ("<b>", "SYM", 6, "appos"), (".", "PUNCT", 3, "punct"),
)  # fmt: skip


@pytest.fixture(scope="session")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = []
    for tree in (TREE, OTHER) * 12:
        lines += [
            f"{at}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
            for at, (word, tag, head, relation) in enumerate(tree, 1)
        ]
        lines.append("")
    path = tmp_path_factory.mktemp("treebank") / "tiny.conllu"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def gpt() -> hs.Model:
    return hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer(), name="tiny <gpt>")


@pytest.fixture(scope="session")
def bert() -> hs.Model:
    return hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer(), name="tiny bert")


@pytest.fixture(scope="session")
def report(gpt: hs.Model, treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> HeadsReport:
    return heads(gpt, treebank, tmp_path_factory.mktemp("report"), sample=2)
