"""What each layer would predict if it were the last: the logit lens."""

from dataclasses import dataclass

from headscope.server.tasks.task import Desk, Task
from headscope.views.contract import CandidateProps, LensProps
from headscope.views.wire import Part


@dataclass(frozen=True)
class LensOptions:
    """How many candidates a place."""

    k: int = 5


def _lens(desk: Desk, options: LensOptions) -> Part:
    assert desk.run is not None
    found = desk.model.lens(desk.run.trace, max(1, min(options.k, 20)))
    told = [[[CandidateProps(one.text, one.logprob) for one in place] for place in layer] for layer in found]
    return Part("lens", LensProps(told))


LENS = Task("lens", LensOptions, _lens)
