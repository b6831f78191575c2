"""Turns trained runs into the folders that ship: weights, config, tokenizer or processor, log and curves.

    python training/publish.py --runs .train/runs --pack .train/pack --to src/headscope/builtin

A run may have been trained in two phases (`first.jsonl`, `second.jsonl`); their logs are joined.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from corpora import write_xz
from draw_curves import draw_curves
from tokenizers import Tokenizer
from train_vit import DEVIATION, MEAN
from transformers import PreTrainedTokenizerFast

TOKENIZERS = {
    "gpt": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
            "model_max_length": 512, "model_input_names": ["input_ids", "attention_mask"]},
    "bert": {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
             "mask_token": "[MASK]", "model_max_length": 256,
             "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]},
    "translate": {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "model_max_length": 256,
                  "model_input_names": ["input_ids", "attention_mask"]},
}  # fmt: skip


def saved_row(rows: list[dict], name: str) -> dict:
    """The row whose weights a run had saved last, by the rule of `RunFolder.offer`."""
    best, last, chosen = float("inf"), -100.0, rows[-1]
    for row in rows:
        value = row["validation_loss"]
        if name == "vit":
            value = 1.0 - row["validation_accuracy"]
        if name == "bert":
            value += 1.0 - row["pair_accuracy"]
        if value < best and row["seconds"] - last > 20:
            best, last, chosen = value, row["seconds"], row
    return chosen


def joined_log(run: Path) -> list[dict]:
    if not (run / "first.jsonl").exists():
        return [json.loads(line) for line in (run / "training_log.jsonl").read_text().splitlines()]
    first, second = (
        [json.loads(line) for line in (run / f"{part}.jsonl").read_text().splitlines()] for part in ("first", "second")
    )
    start = saved_row(first, run.name)
    for row in second:
        for counter in ("step", "seconds", "tokens", "epochs"):
            if counter in row:
                row[counter] = round(row[counter] + start[counter], 2)
    return [{"phase": 1} | row for row in first] + [{"phase": 2} | row for row in second]


def publish(name: str, run: Path, pack: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run / "model.safetensors", folder / "model.safetensors")
    for config in run.glob("*config.json"):
        shutil.copyfile(config, folder / config.name)
    if name == "vit":
        processor = {
            "image_processor_type": "ViTImageProcessor",
            "do_resize": True, "size": {"height": 32, "width": 32}, "resample": 2,
            "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "image_mean": list(MEAN), "image_std": list(DEVIATION),
        }  # fmt: skip
        (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")
    else:
        tokenizer = Tokenizer.from_file(str(pack / f"{name}_tokenizer.json"))
        fast = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **TOKENIZERS[name]
        )
        fast.save_pretrained(folder)
        # The general class reads tokenizer.json as it is; the model's own class would build another tokenizer.
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    log = joined_log(run)
    write_xz(folder / "training_log.jsonl.xz", "".join(json.dumps(row) + "\n" for row in log))
    draw_curves(name, log, folder / "curves.png")
    for path in folder.iterdir():
        path.chmod(0o644)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=Path, default=Path(".train/runs"))
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    arguments.add_argument("--to", type=Path, default=Path("src/headscope/builtin"))
    options = arguments.parse_args()
    for name in ("gpt", "bert", "vit", "translate"):
        publish(name, options.runs / name, options.pack, options.to / name)


if __name__ == "__main__":
    main()
