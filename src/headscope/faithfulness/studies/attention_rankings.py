"""Whether two taggers rank the words of a row alike: Kendall's τ-b and the share of rows with the same first word."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from headscope.faithfulness.kendall_tau import rank_agreement
from headscope.faithfulness.studies.chunking_data import ChunkingData
from headscope.faithfulness.studies.stack_parts import Parameters
from headscope.faithfulness.studies.stacked_tagger import own_log_pattern

N_SENTENCES = 40


@torch.no_grad()
def compare_rankings(
    data: ChunkingData, taggers: Mapping[str, Parameters], pairs: Sequence[tuple[str, str]], *, n_heads: int
) -> list[dict[str, Any]]:
    """For each pair of taggers, over the rows of words in the first 40 test sentences, each head with the same head:
    the mean τ-b, and the share of rows whose largest weight is on the same word, with what chance would give.
    """
    sums = {pair: torch.zeros(5, dtype=torch.float64) for pair in pairs}
    for place in range(min(N_SENTENCES, len(data.test))):
        batch = data.batch(data.test, [place])
        rows = batch.is_word[0]
        weights = {
            name: own_log_pattern(parameters, batch.inputs, batch.mask, n_heads=n_heads)[0, 0][:, rows]
            .flatten(0, 1)
            .cpu()
            for name, parameters in taggers.items()
        }
        for pair in pairs:
            first, second = (weights[name].exp() for name in pair)
            agreement = rank_agreement(first, second)
            is_tested = agreement.is_tested
            same = first.argmax(-1) == second.argmax(-1)
            counts = (
                agreement.tau[is_tested].sum(),
                is_tested.sum(),
                same.sum(),
                len(same),
                len(same) / first.shape[1],
            )
            sums[pair] += torch.tensor([float(count) for count in counts], dtype=torch.float64)
    lines = []
    for (first_name, second_name), (tau, n_tested, n_same, n_rows, by_chance) in sums.items():
        about = {"first": first_name, "second": second_name, "rows": int(n_rows)}
        figures = {
            "tau": float(tau / n_tested),
            "top1": float(n_same / n_rows),
            "chance_top1": float(by_chance / n_rows),
        }
        lines.append(about | figures)
    return lines
