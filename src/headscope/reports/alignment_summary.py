"""Cross-attention as word alignment, for the report: F1 with a statistical aligner; the diagonal is the baseline."""

from dataclasses import replace
from itertools import islice

from headscope.analysis.structure.alignment import STEPS, cross_alignment
from headscope.corpora import Corpus, CorpusProblem, Example, corpus
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.scores import Scores

# The aligner is trained on so many pairs at most, those that are measured among them; with fewer it is a poor judge.
TRAINED_ON = 5000
LEAST_PAIRS = 50


def alignment_scores(
    model: Model,
    whole: Corpus,
    examples: list[Example],
    every: int = 1,
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, Scores]:
    """`alignment/writes` and `alignment/reads` of every cross-attention head; nothing where there are no pairs.

    `whole` is the corpus that the examples are of: more of its pairs, spread as `every` is, train the aligner.
    """
    pairs = [example for example in examples if example.text and example.target]
    if len(pairs) < LEAST_PAIRS or not any(layer.site.kind == "cross" for layer in model.layout.layers):
        return {}
    known = {example.id for example in pairs}
    step = max(1, every * len(pairs) // TRAINED_ON)
    spread = islice((example for example in whole.read() if not isinstance(example, CorpusProblem)), 0, None, step)
    more = [
        example for example in islice(spread, TRAINED_ON) if example.text and example.target and example.id not in known
    ]
    alignment = cross_alignment(
        model,
        corpus(pairs, on_error="skip"),  # pairs too long for the model
        more=more[: max(0, TRAINED_ON - len(pairs))],
        progress=progress,
        cancel=cancel,
    )
    diagonal = alignment.baselines["diagonal"].f1
    settings = {"trained_on": alignment.n_trained_on, "baseline": "links along the diagonal"}
    return {
        f"alignment/{step}": replace(
            alignment.f1[step], baseline=diagonal, baselines={}, settings=alignment.f1[step].settings | settings
        )
        for step in STEPS
    }
