"""The logit lens: which modules turn the last block's output into logits, read from the calls of the probe pass."""

import torch
from torch import Tensor

from headscope.models.capture.probe import Probe
from headscope.sites import Site


def lens_of(probe: Probe, blocks: dict[Site, str]) -> tuple[tuple[str, ...], str]:
    """The chain of modules from the last block's output to the logits (final norm, language-model head)."""
    head = getattr(probe.module, "get_output_embeddings", lambda: None)()
    if head is None or not blocks:
        return (), "the model has no language-model head"
    head_name = probe.names.get(id(head))
    outputs = [(place, name, out) for place, (name, _, out) in enumerate(probe.calls) if out is not None]
    last = max((place for place, name, _ in outputs if name in set(blocks.values())), default=None)
    if last is None or head_name is None:
        return (), "the probe did not reach the language-model head"
    stream = next(out for place, _, out in outputs if place == last)

    def chain(place: int, stream: Tensor) -> tuple[str, ...] | None:
        """Modules, each reading what the one before it gave, that end in the head; poolers lead nowhere."""
        for later, (name, stream_in, _) in enumerate(probe.calls):
            if later <= place or stream_in is None or not _is_same(stream_in, stream):
                continue
            if _covers(name, head_name):
                return (name,)
            done, out = next((done, out) for done, called, out in outputs if done > later and called == name)
            rest = chain(done, out)
            if rest is not None:
                return (name, *rest)
        return None

    modules = chain(last, stream)
    if not modules:
        return (), "something between the last block and the language-model head is not a module"
    last_out = next(out for _, name, out in reversed(outputs) if name == modules[-1])
    logits = outputs[-1][2]  # the last module to end is the model itself
    if last_out.shape != logits.shape or not torch.allclose(last_out, logits, atol=1e-5):
        return (), "something follows the language-model head (a soft cap, a scale)"
    return modules, ""


def _covers(name: str, inner: str) -> bool:
    return name == inner or inner.startswith(f"{name}.")


def _is_same(tensor: Tensor, other: Tensor) -> bool:
    return tensor.data_ptr() == other.data_ptr() and tensor.shape == other.shape
