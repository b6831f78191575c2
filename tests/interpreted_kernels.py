"""The GPU kernels in Triton's interpreter, against float64: run in a process of its own, prints a line for each case.

`python tests/interpreted_kernels.py` with TRITON_INTERPRET=1 set before Triton is imported.
"""

import json
import math
import random
import sys
import warnings

import torch
from made_formulas import FORMULAS
from naive_summary import naive

from headscope.attention import (
    Formula,
    Mask,
    attend_fused,
    expand_heads,
    fused,
    log_denominator,
    scores,
    softmax,
    spans,
)
from headscope.attention.fused import BlockSizes
from headscope.attention.summaries import cell

LOWEST = torch.finfo(torch.float32).min
# Of the largest error: bf16 has 8 bits, and the weights of an fp16 or bf16 product are rounded to as many.
MIXED = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def difference(query, key, value, formula: Formula) -> str:
    """What differs most from float64, or nothing."""
    n_heads, n_queries, n_keys = query.shape[1], query.shape[2], key.shape[2]
    mixed, summaries = attend_fused(query, key, value, formula, rows_only=False)
    offset = 0 if formula.mask is None else formula.mask.query_offset - formula.mask.key_offset
    for example, summary in enumerate(summaries):
        own = slice(example, example + 1)
        part = formula.example(example)
        wide = scores(query[own].double(), expand_heads(key[own].double(), n_heads), part)
        pattern = softmax(wide, formula.sinks)
        expected = naive(pattern[0], log_denominator(wide, formula.sinks)[0].clamp_min(LOWEST), query_offset=offset)
        expected["mixed"] = (pattern @ expand_heads(value[own].double(), n_heads))[0]
        figures = {"mixed": mixed[example], **summary.tensors()}
        # Keys that tie in fp32 may change places: what is compared is the weight that they have.
        for name in ("argmax", "top_keys"):
            places = figures.pop(name).long()
            if places.ndim == 3 and not bool((places[..., min(8, n_keys) :] == -1).all()):
                return "keys that do not exist are among the strongest"
            every = places if places.ndim == 3 else places[..., None]
            if any(
                len(set(row)) < min(len(row), n_keys) for row in every[..., : min(8, n_keys)].flatten(0, 1).tolist()
            ):
                return f"{name}: a key is named twice"
            weights = pattern[0].gather(-1, every.clamp_min(0)).masked_fill(every < 0, 0.0)
            wanted = expected["top_weights"] if places.ndim == 3 else expected["max"][..., None]
            figures[f"weights of {name}"], expected[f"weights of {name}"] = weights, wanted
            expected.pop(name)
        chosen = [list(range(0, n_keys, 3)), [n_keys - 1], list(range(n_keys // 2, n_keys))]
        runs = [spans.runs_of(span) for span in chosen]
        figures["weights of spans"] = fused.weigh_runs(query[own], key[own], part, summary.lse[None], runs)[0]
        expected["weights of spans"] = torch.stack([pattern[0][..., span].sum(-1) for span in chosen], -1)
        rectangle, size = ((n_queries // 3, n_queries), (0, n_keys - n_keys // 4)), (5, 9)
        shape = tuple(-(-(last - first) // step) for (first, last), step in zip(rectangle, size, strict=True))
        of_head = (query[own][0, -1], key[own][0, -1], part.heads(slice(n_heads - 1, n_heads)), summary.lse[-1])
        figures["cells"] = fused.pool_cells(*of_head, rectangle, size, shape)
        cut = pattern[0, -1][slice(*rectangle[0]), slice(*rectangle[1])]
        expected["cells"] = torch.nn.functional.max_pool2d(cut[None], size, ceil_mode=True)[0]
        for name, figure in figures.items():
            limit = MIXED[query.dtype] if name == "mixed" else 5e-5
            if not torch.allclose(figure.double(), expected[name].double(), rtol=1e-4, atol=limit):
                worst = (figure.double() - expected[name].double()).abs().max()
                return f"{name} is off by {worst:.1e} of {n_queries} × {n_keys}"
    return ""


def list_difference(n_rows: int, n_keys: int) -> str:
    """What differs between the strongest keys of lists and those of the scores that they were made from."""
    from headscope.attention.top_kernels import choose_top

    n_lists, capacity = 4, 16
    wide = torch.randn(n_rows, n_keys)
    bounds = wide.topk(min(10, n_keys)).values[:, -1:]
    lists = torch.zeros(n_rows, n_lists, capacity, 2, dtype=torch.int32)
    counts = torch.zeros(n_rows, n_lists, dtype=torch.int32)
    for row in range(n_rows):
        listed = (wide[row] >= bounds[row]).nonzero()[:, 0]
        for key in listed[torch.randperm(len(listed))].tolist():
            lists[row, key % n_lists, counts[row, key % n_lists], 0] = key
            lists[row, key % n_lists, counts[row, key % n_lists], 1] = wide[row, key].view(torch.int32)
            counts[row, key % n_lists] += 1
    top_keys, top_weights = torch.empty(n_rows, 8, dtype=torch.int32), torch.empty(n_rows, 8)
    lse = wide.logsumexp(-1)
    options = {"rows_each": 16, "n_lists": n_lists, "capacity": capacity, "n_top": 8}
    choose_top[(-(-n_rows // 16),)](
        counts, lists.view(torch.int64), lse, top_keys, top_weights, math.log2(math.e), n_rows, n_keys, **options
    )
    number = min(8, n_keys)
    strongest = wide.softmax(-1).topk(number)
    is_same = torch.equal(top_keys[:, :number].long(), strongest.indices) and bool((top_keys[:, number:] == -1).all())
    return (
        "" if is_same and torch.allclose(top_weights[:, :number], strongest.values, atol=1e-6) else "not the strongest"
    )


def map_difference(n_heads: int, length: int, *, causal: bool) -> str:
    """What differs between maps from the largest weights of keys in cells of queries, and max-pooled patterns."""
    from headscope.attention.summary_kernels import pool_columns, spread_levels

    size = cell(length)
    n_cells, width = -(-length // size), -(-size // 4) * 4
    scores_of_all = torch.randn(n_heads, length, length)
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1) if causal else torch.zeros(length, length).bool()
    scores_of_all = scores_of_all.masked_fill(hidden, float("-inf"))
    lse, levels = scores_of_all.logsumexp(-1), torch.full((n_heads, n_cells, width), float("nan"))
    sizes = {"length": length, "cell": size, "n_cells": n_cells}
    spread_levels[(-(-levels.numel() // 64),)](lse, levels, **sizes, width=width, n_levels=levels.numel(), number=64)
    extra = n_cells * size - length
    padded = torch.nn.functional.pad(lse * math.log2(math.e), (0, extra), value=float("inf")).view(
        n_heads, n_cells, size
    )
    if not torch.allclose(levels[..., :size], padded) or not bool((levels[..., size:] == float("inf")).all()):
        return "levels are not those of the cells"
    weights = torch.nn.functional.pad((scores_of_all - lse[..., None]).exp(), (0, extra, 0, extra))
    column_max = weights.unflatten(1, (n_cells, size)).amax(2)[..., :length].log2()
    if causal:  # what no query sees was not written
        seen = torch.arange(length)[None] < (torch.arange(n_cells)[:, None] + 1) * size
        column_max = column_max.masked_fill(~seen, float("nan"))
    pooled = torch.full((n_heads, n_cells, n_cells), float("nan"))
    pool_columns[(n_heads * n_cells,)](column_max.contiguous(), pooled, **sizes, causal=causal, number=2)
    expected = weights.unflatten(1, (n_cells, size)).unflatten(3, (n_cells, size)).amax((2, 4))
    return "" if torch.allclose(pooled, expected, atol=1e-6) else "the map is not the largest weight of its cells"


def vectors(batch: int, heads: int, groups: int, n_queries: int, n_keys: int, dim: int, dtype=torch.float32) -> list:
    """Random queries, keys and values, laid out in memory as models do: [batch, token, head, dim]."""
    shapes = ((heads, n_queries), (groups, n_keys), (groups, n_keys))
    return [torch.randn(batch, n, h, dim).to(dtype).transpose(1, 2) for h, n in shapes]


def cases():
    """A name, vectors and a formula."""
    for name, formula in FORMULAS.items():
        yield name, vectors(1, 4, 4, 37, 37, 16), formula(37)
    for name in ("causal", "dense", "blind, sinks", "bias by offset"):
        yield f"{name}, a single token", vectors(1, 4, 2, 1, 1, 16), FORMULAS[name](1)
    # NumPy, which the interpreter computes with, has no bf16.
    yield "fp16", vectors(1, 4, 2, 20, 20, 32, torch.float16), FORMULAS["causal"](20)
    yield "heads of 20", vectors(1, 4, 2, 20, 20, 20), FORMULAS["causal"](20)
    yield "heads of 80", vectors(1, 4, 1, 7, 7, 80), FORMULAS["window"](7)
    yield "a map of cells", vectors(1, 1, 1, 130, 130, 16), Formula(0.5, mask=Mask.causal(130, 130))
    yield "after a cache", vectors(1, 4, 2, 5, 60, 16), Formula(0.5, mask=Mask.causal(5, 60, query_offset=55))
    keys = torch.arange(17) >= torch.tensor([[0], [7]])
    stop = torch.arange(1, 18)[None]
    yield "a padded batch", vectors(2, 4, 2, 17, 17, 16), Formula(0.5, mask=Mask(17, 17, stop=stop, keys=keys, batch=2))
    yield "equal scores", [vector * 0 for vector in vectors(1, 2, 2, 40, 40, 16)], Formula(0.5)
    draw = random.Random(0)
    for _ in range(3):
        n_queries, n_keys = draw.choice([(draw.randint(1, 50), draw.randint(1, 50)), (draw.randint(1, 50),) * 2])
        groups, dim = draw.choice([1, 2, 4]), draw.choice([16, 24, 64])
        name = draw.choice(list(FORMULAS)) if n_queries == n_keys else "causal"
        formula = (
            FORMULAS[name](n_queries) if n_queries == n_keys else Formula(0.5, mask=Mask.causal(n_queries, n_keys))
        )
        drawn = vectors(draw.choice([1, 2]), 4, groups, n_queries, n_keys, dim)
        yield f"{name}, {n_queries} × {n_keys}, {groups} groups of {dim}", drawn, formula


def main() -> None:
    """Run every case with small blocks, so that each has several."""
    warnings.simplefilter("ignore")  # NumPy's, about rows past the end that nothing reads
    torch.manual_seed(0)
    for choice in ("row_blocks", "top_blocks"):
        setattr(fused, choice, lambda width, dtype: BlockSizes(32, 32))
    fused.received_blocks = lambda width, dtype: BlockSizes(16, 64)
    for n_keys in (3, 40):
        sys.stdout.write(json.dumps([f"lists of {n_keys} keys", list_difference(20, n_keys)]) + "\n")
    for causal in (False, True):
        sys.stdout.write(json.dumps([f"map, causal: {causal}", map_difference(2, 250, causal=causal)]) + "\n")
    for name, (query, key, value), formula in cases():
        try:
            problem = difference(query, key, value, formula)
        except Exception as error:  # told to the test that started this process
            problem = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps([name, problem]) + "\n")


if __name__ == "__main__":
    main()
