"""How a run cuts its corpus up: all that decides which examples share a batch, and so the last digit of a number."""

from dataclasses import dataclass

from headscope.errors import InputError

# Samples are kept for each example of a corpus up to this size; of a larger one for blocks of neighbours.
MAX_BLOCKS = 10_000


@dataclass(frozen=True)
class Plan:
    """Shards of `shard_size` examples; in each, batches of like length with at most `batch_size` examples and
    `batch_tokens` positions, padding counted; samples summed over blocks of `block` neighbours.
    """

    shard_size: int = 256
    batch_size: int = 64
    batch_tokens: int = 4096
    block: int = 1
    seed: int = 0
    threads: int = 1
    truncate: bool = False
    on_error: str = "fail"

    def __post_init__(self):
        for name in ("shard_size", "batch_size", "batch_tokens", "block", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, got {getattr(self, name)}.")
        if self.shard_size % self.block:
            raise InputError(
                f"a shard of {self.shard_size} examples cannot be cut into blocks of {self.block}: choose a block "
                "that divides it."
            )


def block_for(n_examples: int, shard_size: int) -> int:
    """The smallest block that divides a shard and leaves at most `MAX_BLOCKS` of them."""
    for block in range(1, shard_size):
        if shard_size % block == 0 and n_examples <= block * MAX_BLOCKS:
            return block
    return shard_size
