"""What is captured of one model: its attention layers, the way in, and what can be read and edited there."""

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_text, shown
from headscope.errors import CaptureError

if TYPE_CHECKING:
    from headscope.models import AttentionLayer, Model


def coverage(model: "Model") -> dict[str, Any]:
    """Everything the probe found, as plain data."""
    from headscope.models.inputs.accepted import Intake

    if not model.has_layout:
        raise CaptureError(
            f"{model.name} could not be probed with made-up inputs, so what is captured is not known yet: "
            "run it once with `headscope trace`."
        )
    layout = model.layout
    intake = Intake.of(model.processor, model.module, model.stacks)
    limit = intake.limit("text") if "text" in intake.kinds else None
    given = ", ".join(sorted(layout.seen_inputs))
    return {
        "name": model.name,
        "class": type(model.module).__name__,
        "parameters": sum(one.numel() for one in model.module.parameters()),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        "takes": intake.takes,
        "positions": None if limit is None else limit.positions,
        "coverage": model.coverage,
        "n_heads": len(model.heads),
        "layers": [_layer(one) for one in layout.layers],
        "missed": [
            {"module": name, "why": f"the probe (given {given}) did not see it compute attention"}
            for name in layout.missed
        ],
        "contributions": _contributions(model),
        "neurons": _where(layout.neurons, "no MLP was found in the blocks"),
        "residual": _where(layout.blocks, "no blocks around the attention were found"),
        "lens": {"available": bool(layout.lens), "why": "" if layout.lens else layout.no_lens},
        "warnings": list(model.warnings),
    }


def show_coverage(told: dict[str, Any]) -> None:
    """The same, for people."""
    size = f"{told_count(told['parameters'])} parameters, {told['dtype']} on {told['device']}"
    positions = f", up to {told['positions']} tokens" if told["positions"] else ""
    print_text(
        Text.assemble((f"{told['name']} ", "bold"), f"({told['class']}): {size}; takes {told['takes']}{positions}"),
        f"{told['n_heads']} heads; {told['coverage']}",
    )
    table = Table(title=Text("Attention layers"), title_justify="left", title_style="bold")
    for name in ("stack", "layers", "heads", "key heads", "dims", "sees", "way in", "patterns"):
        table.add_column(name)
    for row in _grouped(told["layers"]):
        table.add_row(*row)
    print_text(table)
    for name, what in (
        ("contributions", "trace.contribution"),
        ("neurons", "trace.neurons, set_neuron(…, 'mlp', …)"),
        ("residual", "trace.residual"),
        ("lens", "model.lens"),
    ):
        found = told[name]
        sign, style = ("✓", "green") if found["available"] else ("–", "yellow")
        why = f": {found['why']}" if found["why"] else ""
        print_text(Text.assemble((f"{sign} ", style), f"{name} ({what}){why}"))
    for one in told["missed"]:
        print_text(Text.assemble(("✗ ", "red"), f"not captured: {shown(one['module'])}: {one['why']}"))


def told_count(count: int | None) -> str:
    """A number of parameters as people say it."""
    if count is None:
        return "?"
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)


def _layer(layer: "AttentionLayer") -> dict[str, Any]:
    return {
        "site": str(layer.site),
        "stack": layer.site.stack,
        "kind": layer.site.kind,
        "layer": layer.site.layer,
        "keys_from": layer.key_stack,
        "module": layer.module,
        "way": layer.way,
        "n_heads": layer.n_heads,
        "n_key_heads": layer.n_groups,
        "head_dim": layer.head_dim,
        "value_dim": layer.value_dim,
        "is_causal": layer.is_causal,
        "stores_patterns": layer.stores_patterns or layer.way == "weights",
        "has_queries_and_keys": layer.way != "weights",
    }


def _contributions(model: "Model") -> dict[str, Any]:
    """Whether ‖value · W_O‖ can be had in every layer, or the first reason why not."""
    for layer in model.layout.layers:
        reason = "it gives weights only, not values" if layer.way == "weights" else model.output_gram(layer)[1]
        if reason:
            return {"available": False, "why": f"{layer.site}: {reason}"}
    return {"available": True, "why": ""}


def _where(places: dict, reason: str) -> dict[str, Any]:
    return {"available": bool(places), "why": "" if places else reason}


def _grouped(layers: list[dict[str, Any]]) -> list[list[str]]:
    """One row for layers that are alike, in the order they run."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for one in layers:
        key = tuple(value for name, value in one.items() if name not in ("site", "layer", "module"))
        groups.setdefault(key, []).append(one)
    rows = []
    for group in groups.values():
        one, places = group[0], [member["layer"] for member in group]
        share = one["n_heads"] // one["n_key_heads"]
        rows.append(
            [
                one["stack"] if one["kind"] == "self" else f"cross ({one['stack']} → {one['keys_from']})",
                f"{len(places)}: {_ranges(places)}",
                str(one["n_heads"]),
                f"{one['n_key_heads']} (each for {share})" if share > 1 else str(one["n_key_heads"]),
                f"{one['head_dim']}" + (f", values {one['value_dim']}" if one["value_dim"] != one["head_dim"] else ""),
                "what came before" if one["is_causal"] else "everything" if one["kind"] == "self" else one["keys_from"],
                "weights only" if one["way"] == "weights" else one["way"],
                "stored" if one["stores_patterns"] else "recomputed",
            ]
        )
    return rows


def _ranges(places: list[int]) -> str:
    """`L0–L5, L7` for the numbers of layers."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(f"L{run[0]}–L{run[-1]}" if len(run) > 1 else f"L{run[0]}" for run in runs)
