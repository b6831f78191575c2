"""Why no attention was seen in a model: what looks like attention in it, and what kept it from being read."""

from headscope.models.capture.probe import Probe
from headscope.models.layout import attention_modules

N_NAMED = 3


def no_attention(probe: Probe) -> str:
    """The reason, for people: which modules look like attention, whether they ran, and what they called."""
    name = type(probe.module).__name__
    modules = attention_modules(probe.module)
    by_hand = {module: calls for module, calls in probe.tracer.unread.items() if module or len(probe.names) == 1}
    ran = {module: part for module, part in modules.items() if probe.n_forwards.get(module)}
    if modules and not ran:
        return (
            f"{name} computed no attention with these inputs: {_named(modules)} did not run. Give inputs that reach "
            "them: model.probe(inputs={…})."
        )
    if ran:
        calls = {call for module in ran for call in _calls_in(module, by_hand)}
        written = f", though it calls {' and '.join(sorted(calls))}" if calls else ""
        return (
            f"{name} attends in a way that Headscope cannot read: {_named(ran)} ran, but no softmax of queries · keys "
            f"that weighs values was seen{written}. {_READABLE}"
        )
    if by_hand:
        calls = " and ".join(sorted({call for module_calls in by_hand.values() for call in module_calls}))
        return (
            f"{name} computed no attention that Headscope can read. No module of it is named attention; "
            f"{_listed(sorted(by_hand))} call {calls}, which may be attention written by hand. {_READABLE}"
        )
    return (
        f"{name} computed no attention that Headscope can see: no module of it is named attention, and none calls a "
        "softmax, scaled_dot_product_attention or nn.MultiheadAttention. It may have none (a convolutional or "
        f"recurrent model), or only a fused kernel. {_READABLE}"
    )


_READABLE = (
    "What can be read is a softmax over keys between two matrix products (torch.softmax, q @ k, pattern @ v), "
    "scaled_dot_product_attention, nn.MultiheadAttention, and the attention functions of Transformers; not a softmax "
    "written as exp and sum, flex_attention, other fused kernels, hashing (Reformer) or linear attention."
)


def _calls_in(module: str, by_module: dict[str, set[str]]) -> set[str]:
    """What a module and those in it called."""
    return {
        call for name, calls in by_module.items() if name == module or name.startswith(f"{module}.") for call in calls
    }


def _named(modules: dict) -> str:
    return _listed([f"{name} ({type(part).__name__})" for name, part in modules.items()])


def _listed(names: list[str]) -> str:
    rest = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {rest} more" if rest > 0 else "")
