"""Name the heads of a built-in model by what they do: writes `known_heads.json` beside its weights.

python training/known_heads.py builtin:gpt
python training/known_heads.py            # all four
"""

import argparse
import json
from pathlib import Path
from typing import Any

import headscope as hs
from headscope.analysis import repeated_tokens

FOLDER = Path(hs.__file__).parent / "builtin"
PAIRS = [
    ("The cat sat on the mat.", "A cat lay on the mat."),
    ("He likes green tea.", "Green tea is what he likes."),
    ("I have never been to Boston.", "Boston is a city I have never seen."),
    ("Tom opened the window.", "The window was opened by Tom."),
    ("The farmer asked the housekeeper for the key.", "The housekeeper gave the key to the farmer."),
    ("My brother plays the piano well.", "The piano is played well by my brother."),
]
TRANSLATIONS = [
    ("Tom bought 25 apples in Boston.", "Том купил 25 яблок в Бостоне."),
    ("I was born in 1998.", "Я родился в 1998 году."),
    ("There are 12 months in a year.", "В году 12 месяцев."),
    ("My number is 47.", "Мой номер — 47."),
]


def measure_heads(name: str) -> dict[str, hs.Scores]:
    """Every measure that says something about this model."""
    model = hs.load(f"builtin:{name}")
    if name == "gpt":
        traces = model.run(repeated_tokens(model, n_inputs=16, length=50, seed=1))
        return {name: hs.measure(name, traces) for name in ("previous_token", "duplicate_token", "induction")}
    if name == "bert":
        return {"same_word_across": hs.measure("same_word_across", model.run(PAIRS))}
    if name == "vit":
        images = sorted((FOLDER / "images").glob("*.png"))
        return {"patch_neighbour": hs.measure("patch_neighbour", model.run(images))}
    return {"same_word_across": hs.measure("same_word_across", model.run(TRANSLATIONS))}


def known_heads(name: str, k: int = 3) -> dict[str, Any]:
    """The heads that each measure puts first, with their scores."""
    about_measures = {}
    for measure, scores in measure_heads(name).items():
        about_measures[measure] = {
            "chance": scores.baseline,
            "samples": scores.n_samples,
            "heads": {str(head): round(value, 4) for head, value in scores.top(k)},
        }
    return about_measures


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["gpt", "bert", "vit", "translate"])
    for model in parser.parse_args().models:
        name = model.removeprefix("builtin:")
        measured = known_heads(name)
        (FOLDER / name / "known_heads.json").write_text(json.dumps(measured, indent=1) + "\n")
        for measure, about in measured.items():
            heads = ", ".join(f"{head} {value:.3f}" for head, value in about["heads"].items())
            print(f"builtin:{name:<10} {measure:<18} {heads}   (chance {about['chance']:.3f})")


if __name__ == "__main__":
    main()
