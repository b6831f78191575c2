"""Random tokens, repeated: the input on which induction and previous-token heads show themselves."""

from collections.abc import Sequence

import torch

from headscope.errors import InputError
from headscope.models import Model
from headscope.traces import Inputs


def repeated_tokens(
    model: Model, *, n_inputs: int = 8, length: int = 50, n_repeats: int = 2, seed: int = 0
) -> list[Inputs]:
    """Inputs `[beginning] + random tokens × n_repeats`, each as `model.run` takes it.

    Random tokens leave nothing to guess from meaning: a head that finds what followed last time can only be copying.
    """
    tokenizer = model.tokenizer
    size = getattr(model.config, "vocab_size", None)
    if size is None or not model.is_causal:
        raise InputError(f"{model.name} is not a causal language model: random repeated tokens say nothing about it.")
    special: Sequence[int] = getattr(tokenizer, "all_special_ids", []) if tokenizer is not None else []
    ordinary = torch.tensor([token_id for token_id in range(size) if token_id not in set(special)])
    begin = getattr(tokenizer, "bos_token_id", None) if tokenizer is not None else None
    begin = begin if begin is not None else getattr(model.config, "bos_token_id", None)
    generator = torch.Generator().manual_seed(seed)
    inputs = []
    for _ in range(n_inputs):
        # Drawn without repetition, so that a token's earlier occurrence is the one we put there.
        drawn = ordinary[torch.randperm(len(ordinary), generator=generator)[:length]].repeat(n_repeats)
        start = torch.tensor([begin] if begin is not None and begin < size else [], dtype=torch.long)
        inputs.append(model.read(inputs={"input_ids": torch.cat([start, drawn])}))
    return inputs
