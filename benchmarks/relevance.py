"""Do relevance, importance and ablation agree? Rank correlations over heads of two built-in models, on held-out text.

Needs the Tatoeba and UD English EWT files of `../shared/data`. Samples are fixed; figures are in docs/relevance.md.

python benchmarks/relevance.py            # 20 inputs each, some minutes
python benchmarks/relevance.py --inputs 10
"""

import argparse
import json
import random
import sys
import time
from itertools import combinations
from pathlib import Path

import headscope as hs
from headscope.analysis.attribution.importance import ablation, gate_importance
from headscope.analysis.attribution.relevance import relevance_scores
from headscope.analysis.statistics import rank_correlation

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".benchmarks"
sys.path.insert(0, str(ROOT / "training"))


def translations(data: Path, n: int) -> list[tuple[str, str]]:
    """English and Russian of the translator's own test split."""
    from corpora import translation_pairs

    pairs = [(english, russian) for split, english, russian, _ in translation_pairs(data) if split == "test"]
    return random.Random(0).sample([pair for pair in pairs if 20 <= len(pair[0]) <= 80], n)


def mask_words(model: hs.Model, data: Path, n: int) -> tuple[list[str], list[int]]:
    """Sentences of the treebank's test part with one word masked, and what stood there."""
    from corpora import read_xz

    lines = read_xz(data / "ud_english_ewt" / "en_ewt-ud-test.conllu.xz").split("\n")
    texts = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    draw, masked_texts, targets = random.Random(0), [], []
    for text in draw.sample([text for text in texts if 30 <= len(text) <= 120], 4 * n):
        words = text.split()
        place = draw.randrange(len(words))
        ids = model.tokenizer(words[place], add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and words[place].isalpha() and len(masked_texts) < n:
            masked_texts.append(" ".join([*words[:place], model.tokenizer.mask_token, *words[place + 1 :]]))
            targets.append(ids[0])
    return masked_texts, targets


def compare_methods(model: hs.Model, inputs: list, target: list[int] | None) -> dict:
    """Every pair of methods: Spearman over all heads, and the mean of the layers' own."""
    began = time.perf_counter()
    scores = {
        "CP-LRP": relevance_scores(model, inputs, target=target, normalised=False),
        "AttnLRP": relevance_scores(model, inputs, target=target, normalised=False, rule="attn"),
        "gate gradient": gate_importance(model, inputs, target=target),
        "zero ablation": ablation(model, inputs, target=target),
        "mean ablation": ablation(model, inputs, target=target, by="mean"),
    }
    table = {}
    for method, other in combinations(scores, 2):
        first, second = scores[method], scores[other]
        table[f"{method} · {other}"] = (
            round(rank_correlation(first, second), 2),
            round(rank_correlation(first, second, within_layers=True), 2),
        )
    size = {head: abs(value) for head, value in scores["CP-LRP"].items()}
    for other in ("gate gradient", "zero ablation"):
        both = [rank_correlation(size, scores[other], within_layers=within) for within in (False, True)]
        table[f"|CP-LRP| · {other}"] = tuple(round(number, 2) for number in both)
    return {
        "heads": len(model.heads),
        "inputs": len(inputs),
        "steps": scores["CP-LRP"].settings["steps"],
        "bias share": {name: round(scores[name].settings["bias_share"], 3) for name in ("CP-LRP", "AttnLRP")},
        "loss": round(scores["zero ablation"].settings["loss"], 3),
        "top": {
            name: [f"{head} {value:.3f}" for head, value in head_scores.top(3)] for name, head_scores in scores.items()
        },
        "correlations (all heads, within layers)": table,
        "seconds": round(time.perf_counter() - began),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--inputs", type=int, default=20)
    options.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    arguments = options.parse_args()
    report = {}
    translator = hs.load("builtin:translate")
    report["builtin:translate"] = compare_methods(translator, translations(arguments.data, arguments.inputs), None)
    print(json.dumps(report, indent=1, ensure_ascii=False), flush=True)
    reader = hs.load("builtin:bert")
    report["builtin:bert"] = compare_methods(reader, *mask_words(reader, arguments.data, arguments.inputs))
    print(json.dumps(report["builtin:bert"], indent=1, ensure_ascii=False))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "relevance.json").write_text(json.dumps(report, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
