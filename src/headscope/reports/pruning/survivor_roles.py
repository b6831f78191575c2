"""What the heads that survive do: roles measured again, on the pruned model."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headscope import runs
from headscope.analysis.measures.corpus_measures import streaming
from headscope.analysis.measures.roles import Verdict, roles
from headscope.corpora import Corpus
from headscope.glossary import role_family
from headscope.models import Model
from headscope.models.baking import baked_model
from headscope.progress import Cancel, OnProgress
from headscope.pruning import PrunePoint, Sweep
from headscope.reports.alignment_summary import alignment_scores
from headscope.reports.cases import first_examples
from headscope.reports.copying_scores import copying_scores
from headscope.reports.pruning.curves import (
    GATES,
    RANDOM,
    UNTOUCHED,
    is_gated,
    is_tuned,
    tuned_where_there_are,
)
from headscope.sites import Head

# Examples of the corpus that roles are measured on: as many tell them apart, and every point takes a run.
N_EXAMPLES = 300


@dataclass(frozen=True)
class SurvivorRoles:
    """The verdicts over the heads that survive at a point."""

    point: PrunePoint
    verdicts: dict[Head, Verdict]

    def families(self) -> dict[str, int]:
        """How many survivors have a role of each family; "none" of those without a clear one."""
        return dict(Counter(family_of(verdict) for verdict in self.verdicts.values()))

    def n_with_role(self) -> int:
        """How many survivors have a role."""
        return sum(bool(verdict.findings) for verdict in self.verdicts.values())


def family_of(verdict: Verdict) -> str:
    """The family of a head's first role."""
    return role_family(verdict.findings[0].kind if verdict.findings else None)


def points_to_measure(points: Sequence[PrunePoint]) -> list[PrunePoint]:
    """The untouched model, L0's points from the trained model, and random survivors of as many heads of each type.

    Where points of an L0 point were fine-tuned with their mask, those are taken, and else those that were not.
    """
    gated = tuned_where_there_are([point for point in points if is_gated(point) and point.start == "trained"])
    sources = {point.like or point.id for point in gated}
    drawn = tuned_where_there_are([point for point in points if point.method == RANDOM and point.like in sources])
    alike = [point for point in drawn if point.allocation == GATES] or drawn
    whole = [point for point in points if point.method == UNTOUCHED and not is_tuned(point)]
    return [*whole, *gated, *alike]


def survivor_roles(
    sweep: Sweep,
    model: Model,
    point: PrunePoint,
    corpus: Corpus,
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> SurvivorRoles:
    """Measure roles as `hs.heads` does; what was measured is kept in the point's folder, and not measured again."""
    pruned = baked_model(sweep.load(model, point), point.mask.interventions())
    folder = sweep.point_folder(point.id) / "roles" / _digest(point, corpus)
    measures = streaming(corpus, pruned)
    run = runs.run(pruned, corpus, measures, folder, truncate=True, progress=progress, cancel=cancel)
    scores = run.scores() | copying_scores(pruned)
    scores |= alignment_scores(pruned, corpus, first_examples(corpus), progress=progress, cancel=cancel)
    survivors = set(point.mask.heads_kept())
    verdicts = {head: verdict for head, verdict in roles(scores).items() if head in survivors}
    return SurvivorRoles(point, verdicts)


def _digest(point: PrunePoint, corpus: Corpus) -> str:
    """What roles depend on: another mask, other weights or another corpus have a folder of their own."""
    parts = [point.mask.to_json(), point.weights_sha256, list(corpus.survey())]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
