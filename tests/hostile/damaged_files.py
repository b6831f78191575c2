"""Damages of files, by seed: bits and bytes changed, cut out, put in, and ends cut off."""

import random
from collections.abc import Iterator

# Where headers are: half of all damages are here.
_HEAD = 120


def damages(files: list[bytes], n: int, seed: int) -> Iterator[bytes]:
    """So many damaged files."""
    chance = random.Random(seed)
    for _ in range(n):
        yield damaged(chance.choice(files), chance)


def damaged(file: bytes, chance: random.Random) -> bytes:
    """A file with one to five damages."""
    data = bytearray(file)
    for _ in range(chance.choice([1, 1, 2, 5])):
        if data:
            _damage(data, chance)
    return bytes(data)


def _damage(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(min(len(data), chance.choice([len(data), _HEAD])))
    kind, n = chance.random(), chance.randrange(1, 9)
    if kind < 0.6:
        data[place] = chance.choice([0, 255, chance.randrange(256), data[place] ^ 1 << chance.randrange(8)])
    elif kind < 0.75:
        del data[place : place + n]
    elif kind < 0.9:
        data[place:place] = chance.randbytes(n)
    else:
        del data[place:]
