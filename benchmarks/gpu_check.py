"""Whether the GPU's figures are right: against float64 in every form, and against those of the processor."""

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

import headscope as hs
from headscope.attention import (
    Bias,
    Formula,
    Mask,
    attend_fused,
    expand_heads,
    hopper,
    log_denominator,
    scores,
    softmax,
)
from headscope.attention.summaries import N_TOP, cell
from headscope.models.capture.session import Session

DEVICE = "cuda"


def formulas(n: int, heads: int) -> dict[str, Formula]:
    """Every kind of mask and term."""
    at = torch.arange(n, device=DEVICE)
    causal, start = Mask.causal(n, n, device=DEVICE), (at - 70).clamp_min(0)[None]
    blind = (at + 1).masked_fill(at % 17 == 3, 0)[None]
    dense = torch.rand(1, heads, n, n, device=DEVICE) < 0.3
    random = torch.randn(1, heads, 2 * n - 1, device=DEVICE)
    return {
        "none": Formula(0.125),
        "causal": Formula(0.125, mask=causal),
        "window": Formula(0.125, mask=Mask(n, n, start=start, stop=(at + 1)[None])),
        "padding": Formula(0.125, mask=Mask(n, n, keys=(at >= n // 3)[None])),
        "blind": Formula(0.125, mask=Mask(n, n, stop=blind)),
        "dense": Formula(0.125, mask=Mask(n, n, dense=dense)),
        "softcap": Formula(0.125, softcap=5.0, mask=causal),
        "sinks": Formula(0.125, sinks=torch.randn(heads, device=DEVICE), mask=causal),
        "key bias": Formula(0.125, mask=causal, bias=Bias("key", random[..., :n].contiguous(), n, n)),
        "offset bias": Formula(0.125, bias=Bias("offset", random, n, n)),
        "dense bias": Formula(0.125, bias=Bias("dense", torch.randn(1, 1, n, n, device=DEVICE), n, n)),
    }


def reference(query, key, value, formula: Formula) -> dict[str, torch.Tensor]:
    """Every figure from the whole pattern in float64."""
    n_heads, n, n_keys = query.shape[1], query.shape[2], key.shape[2]
    wide = scores(query.double(), expand_heads(key, n_heads).double(), formula)
    pattern = softmax(wide, formula.sinks)[0]
    away = (torch.arange(n, device=DEVICE)[:, None] - torch.arange(n_keys, device=DEVICE)).abs()
    extra = [-length % cell(length) for length in (n, n_keys)]
    padded = F.pad(pattern, (0, extra[1], 0, extra[0]))
    lowest = torch.finfo(torch.float32).min
    return {
        "mixed": (pattern @ expand_heads(value, n_heads)[0].double()),
        "lse": log_denominator(wide.float(), formula.sinks)[0].clamp_min(lowest),
        "entropy": -torch.special.xlogy(pattern, pattern).sum(-1),
        "max": pattern.amax(-1),
        "distance": (pattern * away).sum(-1) / pattern.sum(-1).clamp_min(1e-30),
        "argmax": pattern.argmax(-1),
        "top_weights": pattern.topk(min(N_TOP, n_keys)).values,
        "received": pattern.mean(1),
        "map": padded.unflatten(2, (-1, cell(n_keys))).unflatten(1, (-1, cell(n))).amax((2, 4)),
        "pattern": pattern,
    }


def errors(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> dict[str, float]:
    """Relative error of each figure; of places, the weight that was missed."""
    pattern = want.pop("pattern")
    report = {}
    for name, expected in want.items():
        actual = got[name].double()
        if name == "argmax":
            chosen = pattern.gather(-1, got[name].long()[..., None])[..., 0]
            report[name] = ((want["max"] - chosen) / want["max"].clamp_min(1e-30)).max().item()
        elif name == "lse":
            report[name] = ((actual - expected.double()).abs() / expected.abs().clamp_min(1)).max().item()
        else:
            actual = actual[..., : expected.shape[-1]]
            # The entropy of a single token is zero: there, the error counts as it is.
            least = 1.0 if name == "entropy" else 1e-2
            report[name] = ((actual - expected.double()).norm() / expected.double().norm().clamp_min(least)).item()
    chosen = pattern.gather(-1, got["top_keys"][..., : want["top_weights"].shape[-1]].long().clamp_min(0))
    report["top_keys"] = (want["top_weights"] - chosen).abs().max().item()
    return report


LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 8e-3}


def jobs() -> list[tuple[int, torch.dtype, str]]:
    """Head sizes, dtypes and formulas to compare; each is compiled anew."""
    every = list(formulas(1, 1))
    some = ["causal", "window", "offset bias"]
    of_some = [(dim, torch.float32) for dim in (64, 128, 256)] + [(80, torch.float16), (16, torch.bfloat16)]
    of_some += [(256, torch.bfloat16)]
    return [(dim, torch.bfloat16, name) for dim in (64, 128) for name in every] + [
        (dim, dtype, name) for dim, dtype in of_some for name in some
    ]


def check(share: tuple[int, int], names: list[str] | None) -> list[dict]:
    """Compare with float64 at ragged lengths: every so many of the jobs, or those of some formulas."""
    rows, n_bad = [], 0
    hopper.DELAYED_FROM = 4096  # so that float64 fits beside it
    # Hopper's kernel takes scores within 4e-6 of each other for equal when it looks for the largest.
    limits = {"argmax": 2e-3}
    chosen = [job for job in jobs() if names is None or job[2] in names]
    for dim, dtype, name in chosen[share[0] :: share[1]]:
        limits["mixed"] = LIMITS[dtype]
        is_delayed = name in ("none", "causal") and dtype == torch.bfloat16 and dim < 256
        for n in (1, 200, 1031, 4500) if is_delayed else (1, 200, 1031):
            sizes = (4, 2, 2)
            query, key, value = (torch.randn(1, h, n, dim, device=DEVICE).to(dtype) for h in sizes)
            query = query * (3 if n == 1031 else 1)
            if n == 4500:  # scores that jump far above all before them
                key[:, :, ::97] *= 30
            formula = formulas(n, 4)[name]
            mixed, summaries = attend_fused(query, key, value, formula, rows_only=False)
            report = errors({"mixed": mixed[0], **summaries[0].tensors()}, reference(query, key, value, formula))
            bad = [figure for figure, error in report.items() if not error <= limits.get(figure, 5e-5)]
            n_bad += len(bad)
            rows.append({"T": n, "dim": dim, "dtype": str(dtype), "formula": name, **report})
            if bad:
                print(
                    f"BAD {name} T={n} d={dim} {dtype}:",
                    *(f"{figure} {report[figure]:.1e}" for figure in bad),
                    flush=True,
                )
    worst = {figure: max(row[figure] for row in rows) for figure in report}
    print(f"{len(rows)} cases, {n_bad} figures off; worst:", *(f"{k} {v:.0e}" for k, v in worst.items()), flush=True)
    return rows


def devices(length: int) -> list[dict]:
    """The summaries of one model on the processor and on the GPU, in fp32: the largest relative errors of figures."""
    config = GPT2Config(n_positions=length, n_embd=256, n_head=4, n_layer=3, attn_implementation="sdpa")
    torch.manual_seed(0)
    module = GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 30000, (2, length))
    figures = []
    for device in ("cpu", DEVICE):
        with Session(hs.Model(module.to(device), verify=False), record="summary") as session:
            forward(module, tokens.to(device))
        records = [record for captured in session.captured.values() for record in captured.records]
        figures.append([record.summary.tensors() for record in records])
    errors: dict[str, float] = {}
    for first, second in zip(*figures, strict=True):
        for name in ("lse", "entropy", "max", "distance", "top_weights", "received", "map"):
            error = (first[name] - second[name]).norm() / first[name].norm()
            errors[name] = max(errors.get(name, 0.0), error.item())
        errors["argmax"] = max(errors.get("argmax", 0.0), (first["argmax"] != second["argmax"]).float().mean().item())
    print(f"devices, T={length}:", *(f"{name} {error:.0e}" for name, error in errors.items()), flush=True)
    return [{"T": length, **errors}]


@torch.no_grad()
def forward(module: torch.nn.Module, tokens: torch.Tensor, *, use_cache: bool = False) -> None:
    """One pass as generation begins it: the logits of the last position.

    Without a cache, Transformers looks for packed sequences, and the GPU waits: not what a graph can hold.
    """
    module(input_ids=tokens, use_cache=use_cache, logits_to_keep=1)
