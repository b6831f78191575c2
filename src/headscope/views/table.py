"""The numbers that a view shows, as a table: the strongest first."""

import csv
import io
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.errors import InputError, MissingExtraError, NotRecordedError, TooManyNumbersError
from headscope.traces import Difference, Tokens, Trace
from headscope.traces.pattern_reading import Reading
from headscope.views.layers import read_trace
from headscope.views.part_keys import PartKey
from headscope.views.selection import MOST_TOP, Selection, Spot, hidden_positions
from headscope.views.weights import Weights, no_weights

if TYPE_CHECKING:
    from headscope.views.view import View

# More than anybody reads, and as much as a spreadsheet or a data frame takes without complaint.
MOST_ROWS = 2_000_000
_BAND_CELLS = 8 * 2**20
VALUES = {"pattern": "weight", "contribution": "contribution", "scores": "score"}


def value_name(view: "View") -> str:
    """What the numbers of a view are."""
    return "difference" if isinstance(view.trace, Difference) else VALUES[view.selection.what]


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers in columns, all of one length; strongest first."""

    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def rows(self, limit: int | None = None) -> list[tuple]:
        """Row by row, as plain Python values."""
        return list(zip(*(column[:limit].tolist() for column in self.columns.values()), strict=True))

    def csv(self) -> bytes:
        """Comma-separated values in UTF-8, with the mark by which spreadsheets know it."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows([[_safe(value) for value in row] for row in self.rows()])
        return text.getvalue().encode("utf-8-sig", "replace")

    def json(self, about: dict[str, Any]) -> bytes:
        """A document: what it is about, columns, rows."""
        rows = [[_number(value) for value in row] for row in self.rows()]
        document = about | {"columns": list(self.columns), "rows": rows}
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")

    def parquet(self) -> bytes:
        """Parquet, which keeps types and is small."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtraError("Parquet needs pyarrow: pip install pyarrow. Or save .csv or .json.") from error
        plain = {
            name: [_text(text) for text in column.tolist()] if column.dtype == object else column
            for name, column in self.columns.items()
        }
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(pyarrow.table(plain), sink)
        return sink.getvalue().to_pybytes()


def table_of(view: "View") -> Table:
    """The table of a view: weights between tokens, or scores of heads."""
    if view.kind == "neuron":
        from headscope.views.neuron_export import neuron_table

        return neuron_table(view)
    return _weights(view) if view.kind == "head" else _heads(view)


def about(view: "View") -> dict[str, Any]:
    """What a table is of."""
    return {"model": view.trace.model, "view": view.kind, "selection": asdict(view.selection)}


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """What a head view shows: weights [head, query, key] of the heads by name, over tokens as read."""

    names: list[str]
    heads: list[int]
    weights: Weights

    def band(self, rows: slice, average: bool) -> torch.Tensor:
        """Some rows of the heads that are shown, or of their mean."""
        first = min(self.heads)
        rows_of_heads = self.weights.whole(heads=slice(first, max(self.heads) + 1), rows=rows)
        rows_of_heads = rows_of_heads[[head - first for head in self.heads]]
        return rows_of_heads.mean(0, keepdim=True) if average else rows_of_heads


def weights_of(view: "View") -> HeadWeights:
    """The heads and tokens of a head view."""
    selection = view.selection
    part_key = PartKey("layer", selection.site, by=selection.by, hide=hidden_positions(view.trace, selection))
    read = read_trace(view.trace, part_key)
    layer = read.layer(selection.site)
    weights = Weights(read, layer, selection.what)
    heads = [layer.site.head(index) for index in selection.heads]
    mean = f"mean of {len(heads)} heads of {layer.site}"
    return HeadWeights([mean] if selection.average else [str(head) for head in heads], selection.heads, weights)


def spot(view: "View") -> Spot | None:
    """The chosen token among those that are left: its position counts tokens that are switched off, theirs does not."""
    token, selection = view.selection.token, view.selection
    if token is None:
        return None
    stack, positions, _ = chosen_token(view.trace, selection)
    groups = _reading(view.trace, selection, stack, selection).groups
    place = next((place for place, group in enumerate(groups) if set(positions) & set(group)), None)
    if place is None:
        raise InputError(f"{token.side} {token.index} is switched off: choose another token, or leave it on.")
    return Spot(token.side, place)


def from_start(trace: Trace, selection: Selection) -> Selection:
    """The selection with the chosen token's position counted from the start; refused where there is no such token."""
    token = selection.token
    if token is None:
        return selection
    count = len(_tokens_around(trace, selection)[1].groups)
    if not -count <= token.index < count:
        raise InputError(f"there is no {token.side} {token.index}: {count} are shown, 0 to {count - 1}.")
    return replace(selection, token=Spot(token.side, token.index % count))


def chosen_token(trace: Trace, selection: Selection) -> tuple[str, tuple[int, ...], str]:
    """The stack of the chosen token, where it is among the model's own tokens (a word: in several places), its text."""
    token = from_start(trace, selection).token
    assert token is not None
    stack, reading = _tokens_around(trace, selection)
    return stack, reading.groups[token.index], reading.tokens[token.index].text


def _tokens_around(trace: Trace, selection: Selection) -> tuple[str, Reading]:
    """The tokens that the chosen one is counted among."""
    token, layer = selection.token, trace.layer(selection.site)
    stack = layer.key_stack if token is not None and token.side == "key" else layer.site.stack
    return stack, _reading(trace, selection, stack, _without_off(selection))


def _reading(trace: Trace, chosen: Selection, stack: str, how: Selection) -> Reading:
    """How the tokens on the chosen token's side are read; of a coarser layer, each place by itself."""
    if isinstance(trace, Difference):
        assert trace.comparison is not None
        return trace.comparison.read(stack, how.by, hidden_positions(trace, how))
    layer = trace.layer(chosen.site)
    assert chosen.token is not None
    length = layer.n_queries if chosen.token.side == "query" else layer.n_keys
    if len(trace.tokens[stack]) != length:
        return Reading.plain(Tokens.numbered(length))
    part_key = PartKey("layer", by=how.by, hide=hidden_positions(trace, how))
    return read_trace(trace, part_key).reading(stack)


def _without_off(selection: Selection) -> Selection:
    return Selection(hide=selection.hide, by=selection.by)


def _weights(view: "View") -> Table:
    layer = view.trace.layer(view.selection.site)
    if no_weights(layer) and layer.summary.top_keys is not None:
        return _strongest_known(view)
    head_weights = weights_of(view)
    head, query, key, value = lines(view, head_weights)
    table = _table_of_lines(
        view, head_weights.names, head_weights.weights.queries, head_weights.weights.keys, head, query, key, value
    )
    if isinstance(view.trace, Difference):
        return table
    for name, reading in (
        ("query position", head_weights.weights.by_row),
        ("key position", head_weights.weights.by_column),
    ):
        table.columns[name] = _own_positions(table.columns[name], reading)
    return table


def _own_positions(places: np.ndarray, reading: Reading | None) -> np.ndarray:
    """Positions among the model's own tokens; of a word or a sentence, that of its first piece."""
    return places if reading is None else np.array([group[0] for group in reading.groups], int)[places]


def lines(view: "View", head_weights: HeadWeights, most: int = MOST_ROWS) -> tuple[np.ndarray, ...]:
    """Heads, queries, keys and values of the lines that the selection's filters leave, in no order."""
    selection, weights = view.selection, head_weights.weights
    allowed = _allowed_ends(selection, weights.queries, weights.keys, spot(view))
    size = max(1, _BAND_CELLS // (len(head_weights.heads) * weights.n_keys))
    heads, queries, keys, values, count = [], [], [], [], 0
    largest, is_signed = _largest(view, head_weights), isinstance(view.trace, Difference)
    for first in range(0, weights.n_queries, size):
        rows = slice(first, min(first + size, weights.n_queries))
        if not allowed[0][rows].any():
            continue
        band = head_weights.band(rows, selection.average)
        strength = band if selection.what == "pattern" and not is_signed else band.abs() / largest
        strength = strength.nan_to_num(nan=0.0, posinf=0.0)
        strength = strength * torch.from_numpy(allowed[1]) * torch.from_numpy(allowed[0][rows])[:, None]
        head, row, key = _passes_filter(strength, selection).nonzero(as_tuple=True)
        count += len(head)
        if count > most:
            raise TooManyNumbersError(_too_many_lines(head_weights, most))
        heads.append(head)
        queries.append(row + first)
        keys.append(key)
        values.append(band[head, row, key])
    places = [torch.cat([torch.zeros(0, dtype=torch.long), *blocks]).numpy() for blocks in (heads, queries, keys)]
    return (*places, torch.cat([torch.zeros(0), *values]).numpy())


def _too_many_lines(head_weights: HeadWeights, most: int) -> str:
    """What was asked for, and what would fit."""
    heads, queries, keys = len(head_weights.names), head_weights.weights.n_queries, head_weights.weights.n_keys
    extent = f"{heads} {'heads' if heads > 1 else 'head'} of {queries:,} queries and {keys:,} keys"
    fit = most // (queries * keys)
    whole_heads = f"whole, {fit} of these heads fit" if fit else f"whole, one head of {math.isqrt(most):,} tokens fits"
    top = min(MOST_TOP, most // (heads * queries))
    filtered = f"filtered, the strongest {top} of each query do (top={top})" if top else "show fewer heads"
    return f"there are more than {most:,} numbers in {extent}: {whole_heads}; {filtered}."


def _largest(view: "View", head_weights: HeadWeights) -> float:
    """What counts as full strength, as on the page: the largest contribution a key can make, the largest score."""
    what, layer = view.selection.what, head_weights.weights.layer
    if what == "contribution":
        assert layer.value_norms is not None
        return float(layer.value_norms.float().max())
    if what == "pattern":
        return 1.0
    most = 1e-30
    size = max(1, _BAND_CELLS // (layer.n_heads * layer.n_keys))
    for first in range(0, layer.n_queries, size):
        band = head_weights.weights.whole(rows=slice(first, min(first + size, layer.n_queries))).abs()
        most = max(most, float(band[band.isfinite()].max()))
    return most


def _allowed_ends(
    selection: Selection, queries: Tokens, keys: Tokens, token: Spot | None
) -> tuple[np.ndarray, np.ndarray]:
    """Which queries and keys lines may run between."""
    allowed = []
    for side, tokens, place in (("query", queries, 0), ("key", keys, 1)):
        is_allowed = np.ones(len(tokens), bool)
        if selection.pair != "all":
            is_allowed &= np.array([token.segment == selection.pair[place] for token in tokens])
        if token is not None and token.side == side:
            is_allowed &= np.arange(len(tokens)) == token.index
        allowed.append(is_allowed)
    return allowed[0], allowed[1]


def _passes_filter(strength: torch.Tensor, selection: Selection) -> torch.Tensor:
    """Which cells [head, query, key] the filter leaves; of equal ones the lower key comes first."""
    if selection.filter == "all":
        return strength > 0
    if selection.filter == "threshold":
        return (strength > 0) & (strength >= selection.threshold)
    order = strength.sort(dim=-1, descending=True, stable=True)
    if selection.filter == "top":
        is_in = torch.arange(strength.shape[-1]) < selection.top
    else:
        before = order.values.cumsum(-1) - order.values
        is_in = before < selection.mass * order.values.sum(-1, keepdim=True) - 1e-6
    passes = torch.zeros_like(strength, dtype=torch.bool)
    return passes.scatter_(-1, order.indices, is_in & (order.values > 0))


def _table_of_lines(view: "View", names: list[str], queries: Tokens, keys: Tokens, head, query, key, value) -> Table:
    order = np.lexsort((key, query, head, -np.abs(value)))
    head, query, key, value = head[order], query[order], key[order], value[order]

    def texts(tokens: Tokens, places: np.ndarray) -> np.ndarray:
        return np.array([*tokens.texts, ""], object)[:-1][places]

    return Table(
        {
            "head": np.array([*names, ""], object)[:-1][head],
            "query position": query,
            "query token": texts(queries, query),
            "key position": key,
            "key token": texts(keys, key),
            value_name(view): value.astype(np.float32),
        }
    )


def _strongest_known(view: "View") -> Table:
    """For a summary: the strongest keys of each query, with the filters that make sense of them."""
    selection, trace = view.selection, view.trace
    if selection.by != "tokens" or selection.hide or selection.off or selection.average or selection.what != "pattern":
        weights_of(view)  # says what to record
    layer = trace.layer(selection.site)
    assert layer.summary.top_keys is not None and layer.summary.top_weights is not None
    queries, keys = trace.query_tokens(layer.site), trace.key_tokens(layer.site)
    allowed = _allowed_ends(selection, queries, keys, spot(view))
    top = layer.summary.top_keys[selection.heads].cpu().long()
    weights = layer.summary.top_weights[selection.heads].cpu().nan_to_num(nan=0.0)
    strength = weights * torch.from_numpy(allowed[0])[:, None] * torch.from_numpy(allowed[1])[top.clamp_min(0)]
    head, query, rank = _passes_filter(strength * (top >= 0), selection).nonzero(as_tuple=True)
    names = [str(layer.site.head(index)) for index in selection.heads]
    key, value = top[head, query, rank].numpy(), weights[head, query, rank].numpy()
    return _table_of_lines(view, names, queries, keys, head.numpy(), query.numpy(), key, value)


def strongest(view: "View", limit: int) -> Table:
    """The strongest connections of the heads that a view shows, between tokens as the model saw them."""
    trace, selection = view.trace, view.selection
    if isinstance(trace, Difference):
        return Table({name: column[:limit] for name, column in table_of(view).columns.items()})
    heads = trace.heads
    if view.kind != "model":
        heads = [trace.layer(selection.site).site.head(index) for index in selection.heads]
    rows: list[tuple] = []
    for head in heads:
        layer = trace.layers[head.site]
        keys, weights = layer.summary.top_keys, layer.summary.top_weights
        if keys is None or weights is None:
            raise NotRecordedError(f"{layer.site} has no weights to show: {no_weights(layer)}.")
        flat = weights[head.index].nan_to_num(nan=0.0).flatten()
        best = flat.topk(min(limit, flat.numel()))
        queries, texts = trace.query_tokens(head), trace.key_tokens(head)
        for weight, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            query = place // keys.shape[-1]
            key = int(keys[head.index].flatten()[place])
            if weight > 0 and key >= 0:
                rows.append((str(head), query, queries[query].text, key, texts[key].text, weight))
    rows = sorted(rows, key=lambda row: -row[-1])[:limit]
    names = ("head", "query position", "query token", "key position", "key token", "weight")
    types = (object, int, object, int, object, float)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return Table({name: np.array(column, kind) for name, column, kind in zip(names, columns, types, strict=True)})


def _heads(view: "View") -> Table:
    """Every head that the model view shows, with its scores."""
    part, heads = view.scores_part, view.trace.heads
    columns = {name: np.asarray(values) for name, values in part.arrays.items()}
    places = np.arange(len(heads))
    if view.selection.least > 0:
        method = next(
            (method for method in part.props.methods if method.name == view.selection.colour), part.props.methods[0]
        )
        values = columns[method.name]
        places = places[(values - method.low) / (method.high - method.low) >= view.selection.least]
    first = columns[view.selection.sort or part.props.methods[0].name]
    places = places[np.argsort(-np.nan_to_num(first[places], nan=-np.inf), kind="stable")]
    return Table(
        {
            "head": np.array([str(heads[place]) for place in places], object),
            "layer": np.array([str(heads[place].site) for place in places], object),
            "index": np.array([heads[place].index for place in places], int),
        }
        | {name: values[places] for name, values in columns.items()}
    )


def _safe(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets a mark before it, which keeps it a text."""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _number(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value


def _text(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
