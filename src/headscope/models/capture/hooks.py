"""Hooks that let a session see what does not pass the attention function: the pass itself, residual stream, MLP, bands.

They are set once, when the layout is known, and do nothing unless the calling context carries a session of this model.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from headscope.models.capture.banded_attention import banded_call, call_arguments, half_window
from headscope.models.capture.expert_routing import routing_of
from headscope.models.capture.probe_inputs import forward_arguments
from headscope.models.capture.seam import current_session
from headscope.models.capture.session import Session
from headscope.models.layout import Layout
from headscope.sites import Site

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule


def session_of(model: "ProbedModule") -> Session | None:
    """The session of this model that the calling context carries."""
    session = current_session.get()
    return session if isinstance(session, Session) and session.model is model else None


def watch_pass(model: "ProbedModule") -> list[RemovableHandle]:
    """Tell the session that a pass begins and ends; probe the model first if these inputs reach parts not seen yet."""
    names = forward_arguments(model.module)

    def begin(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        session = session_of(model)
        if session is None:
            return
        arguments = dict(zip(names, args, strict=False)) | kwargs
        if model.probe_if_new(args, kwargs):
            session.restart()
        session.begin(arguments)

    def end(module: nn.Module, args: tuple, output: Any) -> None:
        session = session_of(model)
        if session is not None:
            session.end()

    return [
        model.module.register_forward_pre_hook(begin, with_kwargs=True),
        model.module.register_forward_hook(end),
    ]


def watch_layers(model: "ProbedModule") -> list[RemovableHandle]:
    """Hooks for everything that the layout names."""
    layout, handles = model.layout, []
    for name in dict.fromkeys(
        name for layer in layout.layers if layer.way == "traced" for name in (layer.head_modules or (layer.module,))
    ):
        handles += _watch_traced(model, name)
    for name in dict.fromkeys(layer.module for layer in layout.layers if layer.is_looped):
        handles.append(_watch_loop(model, name))
    for name in dict.fromkeys(layer.module for layer in layout.layers if layer.way == "banded"):
        handles.append(_watch_bands(model, name))
    for name, sites in _by_module(layout.blocks).items():
        handles += _watch_block(model, name, sites)
    for name, sites in _by_module(layout.neurons).items():
        handles.append(_watch_neurons(model, name, sites))
    for name in dict.fromkeys(router.module for router in layout.routers):
        handles.append(_watch_router(model, name))
    for name, writers in _writers(layout).items():
        handles.append(_watch_writer(model, name, writers))
    return handles


def _by_module(places: dict[Site, str]) -> dict[str, list[Site]]:
    sites_by_module: dict[str, list[Site]] = {}
    for site, name in places.items():
        sites_by_module.setdefault(name, []).append(site)
    return sites_by_module


def _watch_traced(model: "ProbedModule", name: str) -> list[RemovableHandle]:
    module = model.module.get_submodule(name)

    def begin(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        session = session_of(model)
        if session is not None:
            session.tracer.begin(name, module, (*args, *kwargs.values()))

    def end(module: nn.Module, args: tuple, output: Any) -> None:
        session = session_of(model)
        if session is not None:
            session.tracer.end()

    return [
        module.register_forward_pre_hook(begin, with_kwargs=True),
        module.register_forward_hook(end, always_call=True),
    ]


def _watch_loop(model: "ProbedModule", name: str) -> RemovableHandle:
    """Tell the session that all windows of a module were attended to."""

    def end(module: nn.Module, args: tuple, output: Any) -> None:
        session = session_of(model)
        if session is not None:
            session.parts.end(name)

    return model.module.get_submodule(name).register_forward_hook(end)


def _watch_bands(model: "ProbedModule", name: str) -> RemovableHandle:
    """Compute a banded module again, as one attention call. Its own output stands unless an edit or a gradient needs
    ours, which rounds otherwise.
    """
    module = model.module.get_submodule(name)

    def end(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any):
        session = session_of(model)
        if session is None:
            return None
        arguments = call_arguments(module, args, kwargs)
        is_masked, is_global = arguments["is_index_masked"], arguments["is_index_global_attn"]
        session.positions.real[model.layout.of_module(name)[0].site.stack] = ~is_masked
        mask = session.band_mask(is_global, is_masked, half_window(module))
        mixed, _ = session.attend(banded_call(module, arguments["hidden_states"], is_masked, is_global, mask))
        if not (session.grad or session.edits or session.exact):
            return None
        # The module gives nothing for padding.
        return (mixed.flatten(2).masked_fill(is_masked[..., None], 0.0), *output[1:])

    return module.register_forward_hook(end, with_kwargs=True)


def _watch_block(model: "ProbedModule", name: str, sites: list[Site]) -> list[RemovableHandle]:
    module = model.module.get_submodule(name)
    layers = {
        site.stack: max(block.layer for block in model.layout.blocks if block.stack == site.stack) for site in sites
    }
    last = next((site for site in sites if site.layer == layers[site.stack]), None)
    changed = _argument_editor(module)

    def begin(module: nn.Module, args: tuple, kwargs: dict[str, Any]):
        session = session_of(model)
        if session is None:
            return None
        site = sites[session.count(f"block {name}") % len(sites)]
        return changed(args, kwargs, lambda stream: session.residual(site, stream))

    def end(module: nn.Module, args: tuple, output: Any):
        session = session_of(model)
        if session is None or last is None or session.count_so_far(f"block {name}") % len(sites) != 0:
            return None
        after = Site(last.stack, last.layer + 1, "residual")
        if isinstance(output, Tensor):
            return session.residual(after, output)
        if isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
            return type(output)((session.residual(after, output[0]), *output[1:]))
        return None

    return [module.register_forward_pre_hook(begin, with_kwargs=True), module.register_forward_hook(end)]


def _watch_neurons(model: "ProbedModule", name: str, sites: list[Site]) -> RemovableHandle:
    module = model.module.get_submodule(name)

    def begin(module: nn.Module, args: tuple):
        session = session_of(model)
        if session is None or not args or not isinstance(args[0], Tensor):
            return None
        site = sites[session.count(f"neurons {name}") % len(sites)]
        return (session.neurons(site, args[0]), *args[1:])

    return module.register_forward_pre_hook(begin)


def _watch_router(model: "ProbedModule", name: str) -> RemovableHandle:
    sites = [router.site for router in model.layout.routers if router.module == name]

    def end(module: nn.Module, args: tuple, output: Any) -> None:
        session = session_of(model)
        if session is None:
            return
        site, routing = sites[session.count(f"routed {name}") % len(sites)], routing_of(output)
        if session.record is not None and routing is not None:
            session.routings[site] = routing

    return model.module.get_submodule(name).register_forward_hook(end)


def _writers(layout: Layout) -> dict[str, list[tuple[Site, str]]]:
    """The modules that write into a residual stream, each with the layers it writes for and what it writes."""
    writers: dict[str, list[tuple[Site, str]]] = {}
    for layer in layout.layers:
        if layer.out_projection is not None:
            kind = "cross" if layer.site.kind == "cross" else "attention"
            writers.setdefault(layer.out_projection, []).append((Site(layer.site.stack, layer.site.layer), kind))
    for site, name in layout.neurons.items():
        writers.setdefault(name, []).append((Site(site.stack, site.layer), "mlp"))
    return writers


def _watch_writer(model: "ProbedModule", name: str, writers: list[tuple[Site, str]]) -> RemovableHandle:
    def end(module: nn.Module, args: tuple, output: Any) -> None:
        session = session_of(model)
        if session is not None and session.observers and isinstance(output, Tensor):
            session.contribution(*writers[session.count(f"written {name}") % len(writers)], output)

    return model.module.get_submodule(name).register_forward_hook(end)


def _argument_editor(module: nn.Module) -> Callable[[tuple, dict[str, Any], Callable[[Tensor], Tensor]], Any]:
    """How to put another residual stream into a block's arguments: it is the first one."""
    first = next(name for name in inspect.signature(type(module).forward).parameters if name != "self")

    def change(args: tuple, kwargs: dict[str, Any], edit: Callable[[Tensor], Tensor]):
        if args and isinstance(args[0], Tensor):
            return (edit(args[0]), *args[1:]), kwargs
        if isinstance(kwargs.get(first), Tensor):
            return args, kwargs | {first: edit(kwargs[first])}
        return None

    return change
