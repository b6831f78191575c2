"""Every part that the page can ask of a trace, by its key."""

from collections.abc import Callable

import torch

from headscope.attention.summaries import cell
from headscope.corpora import Example
from headscope.errors import InputError, NotRecordedError
from headscope.traces import Difference, Trace, compare
from headscope.views.contract import MapsProps
from headscope.views.differences import alignment_part, difference_maps, difference_scores, known_scores, relation_part
from headscope.views.layers import layer_part
from headscope.views.media import image_part, rollout_part, sound_part
from headscope.views.neurons import neuron_part, vectors_part
from headscope.views.part_keys import parse_key
from headscope.views.row_window import row_part, window_part
from headscope.views.trace_part import trace_part
from headscope.views.wire import Coded, Part


def part(
    trace: Trace,
    key: str,
    *,
    id: str = "",
    find: Callable[[str], Trace] | None = None,
    gold: Example | None = None,
) -> Part:
    """What a key asks for: the keys are those of `views/contract.py`.

    `id` is the name under which the page knows the trace; `find` gives the other run of a key that has one (`minus=`);
    `gold` is the sentence with its words and tree, where known.
    """
    asked = parse_key(key)
    if asked.minus:
        if find is None:
            raise InputError("there is no other run here to compare with.")
        other = find(asked.minus)
        if asked.kind == "alignment":
            return alignment_part(compare(trace, other, by="words" if asked.by == "words" else None))
        found = compare(trace, other)
        if asked.kind == "relation":
            return relation_part(found.relation(asked.source, asked.target))
        trace = found.difference()
    match asked.kind:
        case "trace":
            return trace_part(trace, id)
        case "maps":
            return maps_part(trace, asked.size)
        case "layer":
            return layer_part(trace, asked)
        case "row":
            return row_part(trace, asked)
        case "window":
            return window_part(trace, asked)
        case "neuron":
            return neuron_part(trace, asked)
        case "vectors":
            return vectors_part(trace, asked)
        case "image":
            return image_part(trace, asked.place)
        case "sound":
            return sound_part(trace, asked.place)
        case "rollout":
            return rollout_part(trace, asked.place)
        case "gold" | "tree":
            from headscope.views.trees import gold_part, tree_part  # brings models along, as measures do

            return gold_part(trace, gold) if asked.kind == "gold" else tree_part(trace, gold, asked.place, asked.way)
        case _:
            return difference_scores(trace) if isinstance(trace, Difference) else known_scores(trace)


def maps_part(trace: Trace, size: int) -> Part:
    """`maps`: every head's map as the summary holds it, pooled further by whole factors where asked to."""
    if isinstance(trace, Difference):
        return difference_maps(trace, size)
    cells, arrays = {}, {}
    for site, layer in trace.layers.items():
        found = layer.summary.map
        if found is None:
            raise NotRecordedError(
                f"this trace holds only row figures of {site}. Run with record='summary' or 'heads' for maps."
            )
        rows, columns = (-(-length // size) for length in found.shape[1:])
        if (rows, columns) != (1, 1):
            found = torch.nn.functional.max_pool2d(found.nan_to_num(nan=0.0), (rows, columns), ceil_mode=True)
        cells[str(site)] = (rows * cell(layer.n_queries), columns * cell(layer.n_keys))
        arrays[str(site)] = Coded.of(found.cpu().numpy())
    return Part("maps", MapsProps(size, cells), arrays)
