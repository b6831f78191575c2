"""Pictures and sounds for the page, and rollout: attention followed through all layers down to the input."""

import functools
from dataclasses import replace
from typing import Literal

import numpy as np

from headscope.analysis.structure.rollout import rollout
from headscope.errors import InputError, NotRecordedError, UnknownTokenError
from headscope.sites import Head, Site, parse
from headscope.traces import Difference, LayerRecord, Trace
from headscope.traces.media import Picture, Sound, smaller
from headscope.traces.patch_grids import grid_of
from headscope.traces.tokens import Box
from headscope.views.contract import ImageAreaProps, ImageProps, RolloutProps, SoundProps
from headscope.views.weights import no_weights
from headscope.views.wire import Coded, Part

# A picture is shown no larger than this: what a page carries should not depend on what a model takes.
MOST_PIXELS = 1024
# Rollout holds a matrix of tokens × tokens a layer, in double precision.
MOST_ROLLOUT_TOKENS = 2500
_HALF_CELLS = 2**20


def looks_like(trace: Trace, stack: str) -> Literal["", "image", "sound"]:
    """What there is to look at of a stack: "image", "sound", or nothing."""
    seen = None if trace.inputs is None else trace.inputs.seen.get(stack)
    return "image" if isinstance(seen, Picture) else "sound" if isinstance(seen, Sound) else ""


def shown_in(trace: Trace, layer: LayerRecord) -> str:
    """Whether a layer's keys can be shown as places in a picture ("image") or in time ("sound"); or neither."""
    kind = looks_like(trace, layer.key_stack)
    if kind == "image":
        return kind if grid_of(trace.tokens[layer.key_stack], layer) or has_patches(trace, layer) else ""
    return kind if kind and len(trace.tokens[layer.key_stack]) == layer.n_keys else ""


def has_patches(trace: Trace, layer: LayerRecord) -> bool:
    """Whether a layer's keys say themselves where they lie in a picture, as image tokens within a text do."""
    tokens = trace.tokens[layer.key_stack]
    return len(tokens) == layer.n_keys and layer.places is None and any(token.patch is not None for token in tokens)


def picture_of(trace: Trace, stack: str) -> Picture:
    """The picture that a stack attends over."""
    seen = None if trace.inputs is None else trace.inputs.seen.get(stack)
    if not isinstance(seen, Picture):
        raise NotRecordedError(f"this trace holds no picture of {_stack_of_trace(trace, stack)}.")
    return seen


def sound_of(trace: Trace, stack: str) -> Sound:
    """The sound that a stack attends over."""
    seen = None if trace.inputs is None else trace.inputs.seen.get(stack)
    if not isinstance(seen, Sound):
        raise NotRecordedError(f"this trace holds no sound of {_stack_of_trace(trace, stack)}.")
    return seen


def image_part(trace: Trace, stack: str, *, most: int = MOST_PIXELS) -> Part:
    """`image/main`: the picture as the model saw it, no larger than `most` pixels a side."""
    picture = picture_of(trace, stack)
    pixels, patch = smaller(picture, most)
    height, width = picture.pixels.shape[:2]
    areas = [ImageAreaProps(area.name, shares_of(area.box, picture), area.source) for area in picture.areas]
    props = ImageProps(stack, (height, width), patch, picture.note, areas)
    return Part("image", props, {"pixels": np.ascontiguousarray(pixels.numpy())})


def shares_of(box: Box, picture: Picture) -> Box:
    """A box in pixels of a picture as shares of its width and height."""
    height, width = picture.pixels.shape[:2]
    left, top, right, bottom = (
        round(edge / length, 5) for edge, length in zip(box, (width, height, width, height), strict=True)
    )
    return left, top, right, bottom


def sound_part(trace: Trace, stack: str) -> Part:
    """`sound/encoder`: the waveform as lows and highs, and the spectrogram that the model was given, if it was."""
    sound = sound_of(trace, stack)
    tensors = {"envelope": sound.envelope, "spectrogram": sound.spectrogram}
    arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items() if tensor is not None}
    return Part("sound", SoundProps(stack, sound.seconds, sound.heard, sound.note), arrays)


def rollout_part(trace: Trace, place: str) -> Part:
    """`rollout/L5`: the rollout up to and with a layer [token, token], as `hs.rollout(trace)["L5"]` has it."""
    site = rollout_site(trace, place)
    weights = rollout_to(trace, site).astype(np.float32)
    small = weights.size <= _HALF_CELLS
    return Part("rollout", RolloutProps(str(site)), {"weights": weights if small else Coded.of(weights)})


def rollout_to(trace: Trace, site: Site) -> np.ndarray:
    """The rollout up to and with a layer [token, token]."""
    n_tokens = trace.layers[site].n_keys
    if n_tokens > MOST_ROLLOUT_TOKENS:
        raise InputError(f"rollout is shown for up to {MOST_ROLLOUT_TOKENS:,} tokens; this input has {n_tokens:,}.")
    return _rollouts(trace, site.stack)[str(site)]


def rollout_site(trace: Trace, place: str) -> Site:
    """The layer that a rollout leads up to: one of self-attention."""
    address = parse(place)
    if isinstance(address, Head):
        raise InputError(f"a rollout leads up to a layer, not to a head: write {address.site}.")
    site = trace.layer(address).site
    if site.kind != "self":
        raise InputError(f"{site} attends to another stack: rollout is of attention within one.")
    return site


def can_roll(trace: Trace, site: Site) -> bool:
    """Whether a rollout up to a layer can be shown: over a picture, all layers attending over the same patches."""
    layer = trace.layers[site]
    if isinstance(trace, Difference) or site.kind != "self" or shown_in(trace, layer) != "image" or no_weights(layer):
        return False
    layers_of_stack = [
        record for record in trace.layers.values() if record.site.stack == site.stack and record.site.kind == "self"
    ]
    return all(record.n_keys == layer.n_keys and record.places is None for record in layers_of_stack)


# Whoever looks at one layer's rollout looks at the next: that of one input is remembered, in single precision.
@functools.lru_cache(maxsize=1)
def _rollouts(trace: Trace, stack: str) -> dict[str, np.ndarray]:
    rolled = rollout(replace(trace, readings={}), stack=stack)
    return {str(site): weights.astype(np.float32) for site, weights in zip(rolled.sites, rolled.weights, strict=True)}


def _stack_of_trace(trace: Trace, stack: str) -> str:
    if stack not in trace.tokens:
        raise UnknownTokenError(f"there is no stack {stack[:60]!r}: there are {', '.join(trace.tokens)}.")
    return stack
