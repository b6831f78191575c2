"""Which experts the tokens of a layer took, for the page."""

from headscope.errors import UnknownHeadError
from headscope.sites import Head, Site, parse
from headscope.traces import Difference, LayerRecord, Trace
from headscope.views.contract import ExpertsProps
from headscope.views.wire import Part


def n_experts_of(trace: Trace, layer: LayerRecord) -> int:
    """How many experts a layer's router chooses among; 0 where none was observed."""
    if isinstance(trace, Difference):
        return 0
    choices = trace.expert_choices.get(Site(layer.site.stack, layer.site.layer))
    return 0 if choices is None else choices.n_experts


def experts_part(trace: Trace, place: str) -> Part:
    """`experts/L3`: the experts of every token and their weights, the largest weight first."""
    address = parse(place)
    if isinstance(address, Head):
        raise UnknownHeadError(f"{place} is a head: experts are chosen by layers, ask for {address.site}.")
    choices = trace.experts(address)
    arrays = {"ids": choices.ids.cpu().numpy(), "weights": choices.weights.cpu().numpy()}
    return Part("experts", ExpertsProps(str(address), choices.n_experts), arrays)
