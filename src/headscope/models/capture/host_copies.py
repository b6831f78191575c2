"""Tensors on their way from a GPU to the host, beside the model's own work."""

from collections import defaultdict

import torch
from torch import Tensor


class HostCopies:
    """Copies to pinned memory on a stream of their own. Nothing may read them before `wait`."""

    def __init__(self):
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def start(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The tensors on the host, filled later; those that share memory travel together and share it there too."""
        by_storage: dict[int, list[str]] = defaultdict(list)
        for name, tensor in tensors.items():
            by_storage[tensor.untyped_storage().data_ptr()].append(name)
        copies = dict(tensors)
        for names in by_storage.values():
            group = {name: tensors[name] for name in names}
            device = tensors[names[0]].device
            if device.type == "cuda":
                copies |= self._copy(group, device)
            elif device.type != "cpu":
                copies |= {name: tensor.to("cpu") for name, tensor in group.items()}
        return copies

    def wait(self) -> None:
        """Until everything has arrived."""
        for stream in self._streams.values():
            stream.synchronize()
        self._streams.clear()

    def _copy(self, group: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = _stream_of(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            copies = _copy_whole(group) if fills_its_storage(group) else _copy_each(group)
        next(iter(group.values())).record_stream(stream)  # the memory that all of them share is not reused before
        return copies


_streams: dict[torch.device, torch.cuda.Stream] = {}


def _stream_of(device: torch.device) -> torch.cuda.Stream:
    """The stream for copies from a device: one for all sessions, since streams are never given back."""
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device)
    return _streams[device]


def fills_its_storage(group: dict[str, Tensor]) -> bool:
    """Whether several tensors are nearly all of the memory that they share."""
    used = sum(tensor.numel() * tensor.element_size() for tensor in group.values())
    return len(group) > 1 and used >= 0.9 * next(iter(group.values())).untyped_storage().nbytes()


def _copy_whole(group: dict[str, Tensor]) -> dict[str, Tensor]:
    first = next(iter(group.values()))
    source = torch.empty(0, dtype=torch.uint8, device=first.device).set_(first.untyped_storage())
    host = torch.empty(source.shape, dtype=torch.uint8, pin_memory=True)
    host.copy_(source, non_blocking=True)
    storage = host.untyped_storage()
    return {
        name: torch.empty(0, dtype=tensor.dtype).set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
        for name, tensor in group.items()
    }


def _copy_each(group: dict[str, Tensor]) -> dict[str, Tensor]:
    copies = {}
    for name, tensor in group.items():
        dense = without_gaps(tensor)
        host = torch.empty_like(dense, device="cpu", pin_memory=True)
        copies[name] = host.copy_(dense, non_blocking=True)
    return copies


def without_gaps(tensor: Tensor) -> Tensor:
    """The tensor, copied on its own device if other numbers lie between its own: such a copy to the host would wait."""
    return tensor if torch.empty_like(tensor).stride() == tensor.stride() else tensor.contiguous()
