"""Memory for the tensors of a tile, used again for the next one."""

import math

import torch
from torch import Tensor


class Workspace:
    """Named buffers that one thread works in: fresh pages cost more than the arithmetic done in them."""

    def __init__(self, device: torch.device):
        self.device = device
        self._buffers: dict[str, Tensor] = {}
        self._taken: dict[tuple[str, tuple[int, ...]], Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        """A tensor of this shape; what it held under this name before is lost."""
        taken = self._taken.get((name, shape))
        if taken is None:
            size = math.prod(shape)
            buffer = self._buffers.get(name)
            if buffer is None or buffer.numel() < size:
                self._taken = {key: tensor for key, tensor in self._taken.items() if key[0] != name}
                buffer = self._buffers[name] = torch.empty(size, dtype=dtype, device=self.device)
            taken = self._taken[name, shape] = buffer[:size].view(shape)
        return taken

    def copy(self, name: str, tensor: Tensor) -> Tensor:
        """A contiguous fp32 copy."""
        return self.take(name, tuple(tensor.shape)).copy_(tensor)

    def countdown(self, largest: int, number: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """So many numbers, from the largest one down; not to be written to."""
        name = f"countdown from {largest}, {dtype}"
        if (name, (number,)) not in self._taken:
            self._taken[name, (number,)] = torch.arange(largest, largest - number, -1, dtype=dtype, device=self.device)
        return self._taken[name, (number,)]
