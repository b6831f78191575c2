"""Figures of `builtin:gpt`: bits per byte beside a 5-gram, head scores, continuations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from corpora import documents_by_source, language_model_documents, wikitext2
from head_scores import duplicate, induction, patterns_of, previous_token, random_repeated
from ngram import KneserNey
from sentence_pairs import tatoeba_sentences
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

BYTES_PER_SOURCE = 150_000
PROMPTS = (
    "Once upon a time",
    "The doctor asked the nurse a question. She",
    "The doctor asked the nurse a question. He",
    "The farmer asked the housekeeper for the key because he",
    "Tom said that he",
    "London is the capital of",
)


def held_out_texts(data: Path) -> dict[str, str]:
    """A fixed sample of the test split: at most 150,000 bytes of each source."""
    splits, _, _ = tatoeba_sentences(data)
    documents = documents_by_source(data, splits, "test")
    share = BYTES_PER_SOURCE // len(documents["novels"])
    # Not from the first page on: title pages and tables of contents are no prose.
    passages = {"novels": "\n".join(text[100_000 : 100_000 + share] for text in documents.pop("novels"))}
    return passages | {name: "\n".join(texts)[:BYTES_PER_SOURCE] for name, texts in documents.items()}


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> np.ndarray:
    """<|endoftext|> and the text, in lines as in training."""
    backend = tokenizer.backend_tokenizer
    line_end = backend.encode("\n", add_special_tokens=False).ids
    ids = [tokenizer.bos_token_id]
    for index, line in enumerate(backend.encode_batch_fast(text.split("\n"), add_special_tokens=False)):
        ids += (line_end if index else []) + line.ids
    return np.array(ids, dtype=np.int64)


@torch.no_grad()
def nats_of(model: PreTrainedModel, ids: np.ndarray, stride: int = 256) -> float:
    """Total loss over a stream, each token seen with at least `stride` tokens before it where there are any."""
    width = model.config.n_positions
    total, done = 0.0, 1
    start = 0
    while done < len(ids):
        end = min(len(ids), start + width)
        row = torch.from_numpy(ids[start:end])[None]
        logits = model(row, use_cache=False).logits[0].float()
        fresh = end - done
        target = row[0, -fresh:]
        total += torch.nn.functional.cross_entropy(logits[-fresh - 1 : -1], target, reduction="sum").item()
        done = end
        start = end - stride
    return total


@torch.no_grad()
def patterns(model: PreTrainedModel, tokens: Tensor) -> Tensor:
    return patterns_of(model(tokens, output_attentions=True, use_cache=False).attentions)


def best(scores: Tensor) -> dict[str, float | str]:
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return {"head": f"L{layer}H{head}", "score": round(scores.max().item(), 4)}


def evaluate_gpt(folder: Path, data: Path) -> dict:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    looking = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()

    splits, _, _ = tatoeba_sentences(data)
    training = language_model_documents(data, splits, "train")
    baseline = KneserNey(np.concatenate([encode(tokenizer, text) for text in training]), len(tokenizer))
    texts = held_out_texts(data)
    texts["wikitext2 test"] = wikitext2(data, "test")
    bits: dict[str, dict[str, float]] = {}
    sums = np.zeros(3)
    for name, text in texts.items():
        ids = encode(tokenizer, text)
        size = len(text.encode("utf-8"))
        model_bits = nats_of(model, ids) / math.log(2)
        gram_bits = -np.log2(baseline.probabilities(ids)[1:]).sum()
        bits[name] = {"model": round(model_bits / size, 4), "five_gram": round(gram_bits / size, 4),
                      "bytes": size, "tokens": len(ids) - 1}  # fmt: skip
        if name != "wikitext2 test":
            sums += (model_bits, gram_bits, size)
    bits["held-out, all four"] = {"model": round(sums[0] / sums[2], 4), "five_gram": round(sums[1] / sums[2], 4),
                                  "bytes": int(sums[2])}  # fmt: skip

    length = 100
    repeated = random_repeated(len(tokenizer), 32, length, seed=11, start=tokenizer.bos_token_id)
    bare = random_repeated(len(tokenizer), 32, length, seed=11, start=None)
    prose = encode(tokenizer, texts["novels"])[1:]
    half = torch.from_numpy(np.stack([prose[at : at + length] for at in range(0, 32 * 500, 500)]))
    natural = torch.cat([torch.full((32, 1), tokenizer.bos_token_id), half, half], dim=1)
    heads: dict[str, object] = {}
    for name, rows in (("random", repeated), ("random without start token", bare), ("unseen prose", natural)):
        pattern = patterns(looking, rows)
        heads[name] = {
            "previous_token": best(previous_token(pattern)),
            "induction": best(induction(pattern, length)),
            "duplicate": best(duplicate(pattern, length)),
            "induction_heads_over_0.8": int((induction(pattern, length) >= 0.8).sum()),
            "previous_token_heads_over_0.5": int((previous_token(pattern) >= 0.5).sum()),
        }

    # What the heads are for: the second copy of an unseen passage should cost far less than the first.
    with torch.no_grad():
        logits = model(natural, use_cache=False).logits[:, :-1].float()
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), natural[:, 1:], reduction="none").mean(0)
    heads["unseen prose"]["nats_per_token_first_copy"] = round(losses[1:length].mean().item(), 3)
    heads["unseen prose"]["nats_per_token_second_copy"] = round(losses[length + 1 :].mean().item(), 3)

    continuations = []
    for prompt in PROMPTS:
        inputs = tokenizer(prompt, return_tensors="pt")
        greedy = model.generate(**inputs, max_new_tokens=40, do_sample=False, pad_token_id=0)
        torch.manual_seed(0)
        sampled = model.generate(
            **inputs, max_new_tokens=50, do_sample=True, temperature=0.7, top_p=0.8, top_k=0, pad_token_id=0
        )
        beams = model.generate(
            **inputs, max_new_tokens=40, do_sample=False, num_beams=5, no_repeat_ngram_size=3, pad_token_id=0
        )
        continuations.append(
            {
                "prompt": prompt,
                "greedy": tokenizer.decode(greedy[0], skip_special_tokens=True),
                "five_beams": tokenizer.decode(beams[0], skip_special_tokens=True),
                "sampled": tokenizer.decode(sampled[0], skip_special_tokens=True),
            }
        )
    return {
        "bits_per_byte": bits,
        "baseline": "5-gram over the same BPE tokens, interpolated modified Kneser-Ney, same training text",
        "heads": heads,
        "continuations": continuations,
    }
