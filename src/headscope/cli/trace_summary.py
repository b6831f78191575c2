"""A trace in figures: what each head does on average, its strongest pair of tokens, and what the model answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headscope.cli.console import printable
from headscope.errors import NotRecordedError
from headscope.glossary import label

if TYPE_CHECKING:
    import numpy as np

    from headscope.traces import HeadSummary, Tokens, Trace

ANSWERS_SHOWN = 5
_MEASURES = ("peak_weight", "entropy", "distance_all_keys")


@dataclass(frozen=True)
class Pair:
    """A query, a key, and the weight between them."""

    query: int
    key: int
    query_text: str
    key_text: str
    weight: float


@dataclass(frozen=True)
class Received:
    """The key that gets most of a head's attention, and how much, as a mean over queries."""

    key: int
    text: str
    weight: float


@dataclass(frozen=True)
class HeadFigures:
    """Three measures of one head, under their names in the glossary; where it looks, mostly (None if only rows were
    recorded), and its strongest pair of ordinary tokens."""

    head: str
    peak_weight: float
    entropy: float
    distance_all_keys: float
    mostly: Received | None
    pair: Pair


def head_figures(trace: "Trace") -> list[HeadFigures]:
    """The figures of every head, the sharpest (largest weights on average) first.

    The strongest pair is never that of the first query of a causal model, which sees nothing but itself.
    """
    import numpy as np

    figures = []
    for head in trace.heads:
        layer, summary = trace.layers[head.site], trace.summary(head)
        first = 1 if layer.is_causal and layer.n_queries > 1 else 0
        sharp, entropy, distance = (
            float(np.nanmean(values)) for values in (summary.max, summary.entropy, summary.distance)
        )
        tokens = trace.tokens[layer.site.stack], trace.tokens[layer.key_stack]
        pair = _strongest_pair(summary, *tokens, head.kind == "self", first)
        mostly = _most_received(summary, tokens[1])
        figures.append(HeadFigures(str(head), sharp, entropy, distance, mostly, pair))
    return sorted(figures, key=lambda head: -head.peak_weight)


def head_table(figures: Sequence[HeadFigures], title: str) -> Table:
    """Heads as people read them."""
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    table.add_column("head")
    for name in _MEASURES:
        table.add_column(label(name), justify="right")
    table.add_column("mostly at")
    table.add_column("strongest pair")
    for head in figures:
        pair = Text(f"{printable(head.pair.query_text)} → {printable(head.pair.key_text)} {head.pair.weight:.2f}")
        mostly = Text("–" if head.mostly is None else f"{printable(head.mostly.text)} {head.mostly.weight:.2f}")
        figures_text = f"{head.peak_weight:.3f}", f"{head.entropy:.3f}", f"{head.distance_all_keys:.2f}"
        table.add_row(head.head, *figures_text, mostly, pair)
    return table


def expert_rows(trace: "Trace") -> list[dict[str, Any]]:
    """Which experts each token took, with its weights, for every layer of experts that was observed."""
    return [
        {
            "layer": str(site),
            "n_experts": choices.n_experts,
            "ids": choices.ids.tolist(),
            "weights": choices.weights.tolist(),
        }
        for site, choices in trace.expert_choices.items()
    ]


def expert_table(trace: "Trace", top: int) -> Table:
    """The experts of every layer that most tokens took."""
    ranks = {choices.ids.shape[1] for choices in trace.expert_choices.values()}
    plural = "s" if max(ranks) > 1 else ""
    a_token = f"{min(ranks)}" if len(ranks) == 1 else f"{min(ranks)} to {max(ranks)}"
    title = f"Mixture of experts: each token took {a_token} expert{plural} per layer"
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for name in ("layer", "experts", "taken by most tokens (share of tokens)"):
        table.add_column(name, justify="right" if name == "experts" else "left")
    for site, choices in trace.expert_choices.items():
        shares, experts = choices.share_of_tokens().sort(descending=True, stable=True)
        taken = [(expert, share) for expert, share in zip(experts.tolist(), shares.tolist(), strict=True) if share]
        text = ", ".join(f"E{expert} {share:.2f}" for expert, share in taken[:top])
        table.add_row(str(site), f"{choices.n_experts:,}", Text(text))
    return table


def answers(trace: "Trace", k: int) -> list[dict[str, Any]]:
    """What the model answered, at each position where it does; empty where it answers nothing."""
    if trace.answers is None:
        return []
    positions: Sequence[int | None] = trace.answers.positions or [None]
    tokens = trace.tokens.get(trace.answers.stack)
    rows = []
    for place, position in enumerate(positions):
        top = [
            {"text": token.text, "id": token.id, "probability": token.probability, "logprob": token.logprob}
            for token in trace.predictions(k, answer=place)
        ]
        text = tokens[position].text if tokens is not None and position is not None else None
        rows.append({"position": position, "token": text, "top": top})
    return rows


def answer_lines(trace: "Trace", k: int) -> list[Text]:
    """The answers, a line each: the last ones, where there are many."""
    rows = answers(trace, k)
    if not rows:
        try:
            trace.predictions()
        except NotRecordedError as reason:
            return [Text(f"no predictions: {reason}")]
    lines = []
    for row in rows[-ANSWERS_SHOWN:]:
        at = "" if row["position"] is None else f" at {row['position']} ({printable(row['token'] or '')})"
        predictions = ", ".join(f"{answer_text(top['text'])} {top['probability']:.3f}" for top in row["top"])
        lines.append(Text.assemble((f"predicts{at}: ", "bold"), predictions))
    if len(rows) > ANSWERS_SHOWN:
        lines.append(Text(f"(the last {ANSWERS_SHOWN} of {len(rows)} answers; --json gives all)", style="dim"))
    return lines


def answer_text(text: str) -> str:
    """An answer as tokens are shown: without the space that many tokenizers put before a word."""
    return printable(text.strip(" ") or text)


def _most_received(summary: "HeadSummary", keys: "Tokens") -> Received | None:
    import numpy as np

    if summary.received is None:
        return None
    key = int(np.nanargmax(summary.received))
    return Received(key, _text(keys, key), float(summary.received[key]))


def _strongest_pair(summary: "HeadSummary", queries: "Tokens", keys: "Tokens", is_self: bool, first: int) -> Pair:
    """The largest weight between two different ordinary tokens; between any two where there are no such."""
    import numpy as np

    if summary.top_keys is not None and summary.top_weights is not None:
        columns, weights = summary.top_keys, np.nan_to_num(summary.top_weights, nan=-1.0)
    else:
        columns, weights = summary.argmax[:, None], np.nan_to_num(summary.max, nan=-1.0)[:, None]
    rows = np.arange(len(columns))[:, None]
    seen = (rows >= first) & (columns >= 0)
    wanted = seen & _ordinary(queries, len(columns))[:, None] & _ordinary(keys, int(columns.max()) + 1)[columns]
    if is_self:
        wanted &= rows != columns
    best = int(np.where(wanted if wanted.any() else seen, weights, -2.0).argmax())
    query, place = divmod(best, weights.shape[1])
    key = int(columns[query, place])
    return Pair(query, key, _text(queries, query), _text(keys, key), float(weights[query, place]))


def _ordinary(tokens: "Tokens", length: int) -> "np.ndarray":
    import numpy as np

    marks = [not token.special for token in tokens][:length]
    return np.array(marks + [True] * (length - len(marks)))


def _text(tokens: "Tokens", place: int) -> str:
    """The token there, or its number: the later layers of some image models have a coarser grid than the tokens."""
    return tokens[place].text if place < len(tokens) else str(place)
