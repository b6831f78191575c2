"""Every part that the page can ask of a trace, by its key."""

from collections.abc import Callable

import torch

from headscope.attention.summaries import cell
from headscope.corpora import Example
from headscope.errors import InputError, NotRecordedError
from headscope.traces import Difference, Trace, compare
from headscope.views.contract import MapsProps
from headscope.views.differences import alignment_part, cached_scores, difference_maps, difference_scores, relation_part
from headscope.views.experts import experts_part
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
    """What a key asks for: the keys are those of `views/contract/`.

    `id` is the name under which the page knows the trace; `find` gives the other run of a key that has one (`minus=`);
    `gold` is the sentence with its words and tree, where known.
    """
    part_key = parse_key(key)
    if part_key.minus:
        if find is None:
            raise InputError("there is no other run here to compare with.")
        other = find(part_key.minus)
        if part_key.kind == "alignment":
            return alignment_part(compare(trace, other, by="words" if part_key.by == "words" else None))
        comparison = compare(trace, other)
        if part_key.kind == "relation":
            return relation_part(comparison.relation(part_key.source, part_key.target))
        trace = comparison.difference()
    match part_key.kind:
        case "trace":
            return trace_part(trace, id)
        case "maps":
            return maps_part(trace, part_key.size)
        case "layer":
            return layer_part(trace, part_key)
        case "row":
            return row_part(trace, part_key)
        case "window":
            return window_part(trace, part_key)
        case "neuron":
            return neuron_part(trace, part_key)
        case "vectors":
            return vectors_part(trace, part_key)
        case "image":
            return image_part(trace, part_key.place)
        case "sound":
            return sound_part(trace, part_key.place)
        case "rollout":
            return rollout_part(trace, part_key.place)
        case "experts":
            return experts_part(trace, part_key.place)
        case "gold" | "tree":
            from headscope.views.trees import gold_part, tree_part  # brings models along, as measures do

            return (
                gold_part(trace, gold)
                if part_key.kind == "gold"
                else tree_part(trace, gold, part_key.place, part_key.way)
            )
        case _:
            return difference_scores(trace) if isinstance(trace, Difference) else cached_scores(trace)


def maps_part(trace: Trace, size: int) -> Part:
    """`maps`: every head's map as the summary holds it, pooled further by whole factors where asked to."""
    if isinstance(trace, Difference):
        return difference_maps(trace, size)
    cells, arrays = {}, {}
    for site, layer in trace.layers.items():
        pattern_map = layer.summary.map
        if pattern_map is None:
            raise NotRecordedError(
                f"this trace holds only row figures of {site}. Run with record='summary' or 'heads' for maps."
            )
        rows, columns = (-(-length // size) for length in pattern_map.shape[1:])
        if (rows, columns) != (1, 1):
            pattern_map = torch.nn.functional.max_pool2d(
                pattern_map.nan_to_num(nan=0.0), (rows, columns), ceil_mode=True
            )
        cells[str(site)] = (rows * cell(layer.n_queries), columns * cell(layer.n_keys))
        arrays[str(site)] = Coded.of(pattern_map.cpu().numpy())
    return Part("maps", MapsProps(size, cells), arrays)
