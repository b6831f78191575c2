"""Raganato & Tiedemann (2018): trees from attention, recurrent patterns, and what each layer knows of words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headscope.reports.studies.checks import NOT_QUOTED, Check

if TYPE_CHECKING:
    from headscope.analysis.structure.trees import Trees
    from headscope.reports.studies.run_study import Measured

MEASURES = ("self_token", "previous_token", "next_token", "last_token", "positional", "dependency_alignment")
NOTES = (
    "UAS depends on conventions by ten points and more. Here the gold root is given and counts; the last word (first, "
    "for left-branching) is attached to the root. The published baselines are quoted from memory of the paper, and its "
    "convention is not known to us.",
    "Recomputed on UD English PUD, with the gold root: attach to the next word 40.0, to the previous 12.6, all to "
    "the root 29.3.",
    "Orientations: A, a dependent attends to its head; AT, a head to its dependents; A+AT, their sum.",
    "Probes are linear and learn on 60 % of the sentences; the best layer is chosen on other 20 %, accuracy is of "
    "the rest.",
)
_PATTERNS = ("self_token", "previous_token", "next_token", "last_token")
_N_PROBED = 600


def checks(measured: "Measured") -> Iterator[Check]:
    """Trees, patterns and probes."""
    from headscope.analysis.structure.probes import layer_probes
    from headscope.analysis.structure.trees import induced_trees

    trees = induced_trees(
        measured.model,
        measured.examples,
        progress=measured.progress,
        cancel=measured.cancel,
    )
    yield from _trees(trees)
    part = "Recurrent patterns"
    for name in _PATTERNS:
        pattern_scores = measured.scores.get(name)
        if pattern_scores is not None and any(value == value for value in pattern_scores.values()):
            head, most = pattern_scores.top(1)[0]
            n = sum(value >= 0.5 for value in pattern_scores.values() if value == value)
            yield Check(
                part,
                f"heads with most of their weight on the {name.partition('_')[0]} token",
                "recurs",
                f"{n} (most: {head} {100 * most:.0f} %)",
            )
    tags = next(iter(measured.examples)).tags
    for tag, published in (("upos", "best in layers 1 to 3 (POS)"), ("chunk", "best in layers 1 to 4")):
        if tag in tags:
            probes = layer_probes(
                measured.model,
                measured.examples,
                tag,
                limit=_N_PROBED,
                progress=measured.progress,
                cancel=measured.cancel,
            )
            path = " ".join(f"{100 * layer.accuracy:.0f}" for layer in probes.depths)
            ours = (
                f"{probes.best_layer} ({path} from embeddings up; each word's commonest tag {100 * probes.by_word:.0f})"
            )
            yield Check("What layers know of words", f"layer that knows most of {tag}", published, ours)


def _trees(trees: "Trees") -> Iterator[Check]:
    part, base = "Trees from attention (UAS, %)", trees.baselines
    baselines = {
        name: f"{100 * uas['all']:.1f} ({100 * uas['words']:.1f} without punctuation)" for name, uas in base.items()
    }
    yield Check(part, "right-branching: attach to the next word", "35.08 (from memory)", baselines["next"])
    yield Check(part, "left-branching: attach to the previous word", "10.39 (from memory)", baselines["previous"])
    yield Check(
        part, "all to the root; random trees", NOT_QUOTED, f"{baselines['root']}; {100 * base['random']['all']:.1f}"
    )
    for orientation, uas in trees.scores.items():
        mean = float(np.nanmean(list(uas["all"].values())))
        head, most = uas["all"].top(1)[0]
        yield Check(
            part,
            f"{orientation}: mean over heads; best head",
            "mean near left-branching; best near right-branching",
            f"{100 * mean:.1f}; {100 * most:.1f} ({head})",
        )
    orientation, _, _ = trees.best()
    layers = " ".join(
        f"{site}: {100 * mean:.1f}/{100 * top:.1f} ({head})" for site, mean, head, top in trees.layers(orientation)
    )
    yield Check(part, f"layer by layer under {orientation}: mean/best", NOT_QUOTED, layers)
