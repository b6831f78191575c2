"""Measures a built-in model from scratch on held-out data, prints the figures and writes them beside the model.

python training/evaluate.py builtin:gpt --data ../shared/data
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

BUILT_IN = Path(__file__).resolve().parents[1] / "src" / "headscope" / "builtin"


def show(value: object, name: str, depth: int = 0) -> None:
    """Prints nested figures: the plain values of a table in one line, then its parts, further in."""
    lead = "  " * depth
    if isinstance(value, dict):
        plain = [f"{key}={part}" for key, part in value.items() if not isinstance(part, dict | list)]
        print(f"{lead}{name:<26}", "  ".join(plain))
        for key, part in value.items():
            if isinstance(part, dict | list):
                show(part, str(key), depth + 1)
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        print(f"{lead}{name:<26}", ", ".join(value))
    elif isinstance(value, list):
        print(f"{lead}{name}")
        for index, part in enumerate(value):
            show(part, str(index + 1), depth + 1)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model", help="builtin:gpt, builtin:bert, builtin:vit or builtin:translate")
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--folder", type=Path, help="another folder with the model, instead of the built-in one")
    options = arguments.parse_args()
    name = options.model.removeprefix("builtin:")
    folder = options.folder or BUILT_IN / name
    torch.manual_seed(0)
    # Imported by name: each evaluation needs packages the others do not.
    if name == "gpt":
        from evaluate_gpt import evaluate_gpt as evaluation
    elif name == "bert":
        from evaluate_bert import evaluate_bert as evaluation
    elif name == "vit":
        from evaluate_vit import evaluate_vit as evaluation
    elif name == "translate":
        from evaluate_translate import evaluate_translate as evaluation
    else:
        arguments.error(f"no built-in model is called {options.model}")
    figures = evaluation(folder, options.data)
    (folder / "figures.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    show(figures, f"builtin:{name}")


if __name__ == "__main__":
    main()
