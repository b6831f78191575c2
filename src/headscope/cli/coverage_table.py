"""What is captured of one model: its attention layers, the way in, and what can be read and edited there."""

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_text, printable
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
    inputs = ", ".join(sorted(layout.seen_inputs))
    return {
        "name": model.name,
        "class": type(model.module).__name__,
        "parameters": sum(parameter.numel() for parameter in model.module.parameters()),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        "takes": intake.takes,
        "positions": None if limit is None else limit.positions,
        "coverage": model.coverage,
        "n_heads": len(model.heads),
        "layers": [_layer(layer) for layer in layout.layers],
        "other_layers": [
            {"stack": other.site.stack, "layer": other.site.layer, "module": other.module, "mixer": other.mixer}
            for other in layout.other_layers
        ],
        "missed": [
            {"module": name, "why": f"the probe (given {inputs}) did not see it compute attention"}
            for name in layout.missed
        ],
        "contributions": _contributions(model),
        "neurons": _where(layout.neurons, "no MLP was found in the blocks"),
        "residual": _where(layout.blocks, "no blocks around the attention were found"),
        "lens": {"available": bool(layout.lens), "why": "" if layout.lens else layout.no_lens},
        "warnings": list(model.warnings),
    }


def show_coverage(report: dict[str, Any]) -> None:
    """The same, for people."""
    size = f"{short_count(report['parameters'])} parameters, {report['dtype']} on {report['device']}"
    positions = f", up to {report['positions']} tokens" if report["positions"] else ""
    print_text(
        Text.assemble(
            (f"{report['name']} ", "bold"), f"({report['class']}): {size}; takes {report['takes']}{positions}"
        ),
        f"{report['n_heads']} heads; {report['coverage']}",
    )
    table = Table(title=Text("Attention layers"), title_justify="left", title_style="bold")
    for name in ("stack", "layers", "heads", "key heads", "dims", "sees", "way in", "patterns"):
        table.add_column(name)
    for row in _layer_rows(report["layers"]):
        table.add_row(*row)
    for row in _other_rows(report["other_layers"]):
        table.add_row(*row)
    print_text(table)
    for name, what in (
        ("contributions", "trace.contribution"),
        ("neurons", "trace.neurons, set_neuron(…, 'mlp', …)"),
        ("residual", "trace.residual"),
        ("lens", "model.lens"),
    ):
        feature = report[name]
        sign, style = ("✓", "green") if feature["available"] else ("–", "yellow")
        why = f": {feature['why']}" if feature["why"] else ""
        print_text(Text.assemble((f"{sign} ", style), f"{name} ({what}){why}"))
    for module in report["missed"]:
        print_text(Text.assemble(("✗ ", "red"), f"not captured: {printable(module['module'])}: {module['why']}"))


def short_count(count: int | None) -> str:
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
        "stores_patterns": layer.stores_patterns,
        "window": layer.window,
    }


def _contributions(model: "Model") -> dict[str, Any]:
    """Whether ‖value · W_O‖ can be had in every layer, or the first reason why not."""
    for layer in model.layout.layers:
        reason = model.output_gram(layer)[1]
        if reason:
            return {"available": False, "why": f"{layer.site}: {reason}"}
    return {"available": True, "why": ""}


def _where(places: dict, reason: str) -> dict[str, Any]:
    return {"available": bool(places), "why": "" if places else reason}


def _layer_rows(layers: list[dict[str, Any]]) -> list[list[str]]:
    """One row for layers that are alike, in the order they run."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for layer in layers:
        key = tuple(value for name, value in layer.items() if name not in ("site", "layer", "module"))
        groups.setdefault(key, []).append(layer)
    rows = []
    for group in groups.values():
        layer, numbers = group[0], [member["layer"] for member in group]
        share = layer["n_heads"] // layer["n_key_heads"]
        is_self = layer["kind"] == "self"
        dims = layer["head_dim"] // 2 if layer["way"] == "banded" else layer["head_dim"]
        rows.append(
            [
                layer["stack"] if is_self else f"cross ({layer['stack']} → {layer['keys_from']})",
                f"{len(numbers)}: {_ranges(numbers)}",
                str(layer["n_heads"]),
                f"{layer['n_key_heads']} (each for {share})" if share > 1 else str(layer["n_key_heads"]),
                f"{dims}{', twice' * (dims != layer['head_dim'])}"
                + (f", values {layer['value_dim']}" if layer["value_dim"] != dims else ""),
                _reach(layer),
                layer["way"],
                "stored" if layer["stores_patterns"] else "recomputed",
            ]
        )
    return rows


def _reach(layer: dict[str, Any]) -> str:
    """Which keys a query of a layer sees."""
    window = layer["window"]
    if layer["kind"] != "self":
        return layer["keys_from"]
    if layer["way"] == "banded":
        return f"{window - 1} to each side, global tokens"
    if layer["is_causal"]:
        return "what came before" if window is None else f"the last {window} tokens"
    return "everything" if window is None else f"{window - 1} to each side"


def _other_rows(layers: list[dict[str, Any]]) -> list[list[str]]:
    """One row for the layers of a stack that mix tokens in the same way, without softmax attention."""
    groups: dict[tuple[str, str], list[int]] = {}
    for layer in layers:
        groups.setdefault((layer["stack"], layer["mixer"]), []).append(layer["layer"])
    return [
        [stack, f"{len(numbers)}: {_ranges(numbers)}", "–", "–", "–", "–", f"no softmax attention: {mixer}", "–"]
        for (stack, mixer), numbers in groups.items()
    ]


def _ranges(places: list[int]) -> str:
    """`L0–L5, L7` for the numbers of layers."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(f"L{run[0]}–L{run[-1]}" if len(run) > 1 else f"L{run[0]}" for run in runs)
