"""Heads that stand out in an atlas: what to look at first."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.errors import NotInAtlasError
from headscope.scores import Scores
from headscope.sites import Head, parse

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas

AnomalyKind = Literal["norm_gap", "separated", "key_bias", "first_token", "uniform", "dead"]
LABELS: dict[AnomalyKind, str] = {
    "norm_gap": "Norm gap: queries and keys of very different length",
    "separated": "Separated clouds: queries and keys lie apart",
    "key_bias": "Key bias: most of the logits is the key's alone, which the joint map hides",
    "first_token": "Attends to the first token",
    "uniform": "Uniform: attends almost equally to all that it sees",
    "dead": "Dead: queries, keys or values hardly vary, or add almost nothing",
}
# From where on a head stands out. Each is stated with the anomaly.
NORM_RATIO = 2.0
SEPARATION = 2.0
KEY_BIAS = 0.5
FIRST_TOKEN = 0.5
ENTROPY = 0.97
DEAD_NORM, DEAD_SPREAD = 0.01, 1e-3


@dataclass(frozen=True)
class Anomaly:
    """A head that stands out, by which number, and from where on a head does."""

    head: str
    kind: AnomalyKind
    value: float
    threshold: float

    @property
    def label(self) -> str:
        """What it means, in words."""
        return LABELS[self.kind]


def anomalies(atlas: "Atlas") -> list[Anomaly]:
    """All anomalies of an atlas of queries and keys, kind by kind, the strongest first.

    Norm ratios count in either direction, as the larger over the smaller. Entropy is divided by that of equal weights.
    """
    if "anomalies" in atlas.index:  # found before the vectors were left behind
        return [Anomaly(**row) for row in atlas.index["anomalies"]]
    if atlas.index["options"]["space"] != "query_key" or not atlas.index["has_vectors"]:
        raise NotInAtlasError("anomalies are those of queries and keys, which this atlas does not hold.")
    listed: list[Anomaly] = []
    rows = {str(head): row for head, row in atlas.scores().items()}
    for head, row in rows.items():
        ratio = max(row.norm_ratio, 1 / row.norm_ratio) if row.norm_ratio > 0 else float("nan")
        spread = min(row.query_spread, row.key_spread)
        listed += _above(head, "norm_gap", ratio, NORM_RATIO)
        listed += _above(head, "separated", row.separation, SEPARATION)
        listed += _above(head, "key_bias", row.key_bias_share, KEY_BIAS)
        largest = max(row.query_spread, row.key_spread)
        if spread <= DEAD_SPREAD * largest or not largest > 0:
            listed.append(Anomaly(head, "dead", spread, DEAD_SPREAD * largest))
    listed += _of_patterns(atlas, set(rows))
    order = list(LABELS)
    return sorted(listed, key=lambda anomaly: (order.index(anomaly.kind), _weakness(anomaly), anomaly.head))


def _above(head: str, kind: AnomalyKind, value: float, threshold: float) -> list[Anomaly]:
    return [Anomaly(head, kind, value, threshold)] if value >= threshold else []


def _weakness(anomaly: Anomaly) -> float:
    return anomaly.value if anomaly.kind == "dead" else -anomaly.value


def _of_patterns(atlas: "Atlas", heads: set[str]) -> list[Anomaly]:
    """Those that the attention weights show, and the length of values, as the run counted them."""
    listed: list[Anomaly] = []
    run = atlas.vector_files().run
    tables = {name: run.table(name) for name in ("first_token", "entropy", "points")}
    if tables["first_token"].keys():
        for head, value in _means(tables["first_token"].mean(), heads):
            listed += _above(head, "first_token", value, FIRST_TOKEN)
    if tables["entropy"].keys():
        entropy = tables["entropy"].mean()
        for head, value in _means(entropy, heads):
            most = entropy.baselines.get(_head(head), float("nan"))
            listed += _above(head, "uniform", value / most if most > 0 else float("nan"), ENTROPY)
    counted = tables["points"].keys()
    if "value_norm" in counted:
        norms = dict(_means(tables["points"].mean("value_norm"), heads))
        by_site: dict[str, list[float]] = {}
        for head, value in norms.items():
            by_site.setdefault(head.rpartition("H")[0], []).append(value)
        for head, value in norms.items():
            border = DEAD_NORM * float(np.median(by_site[head.rpartition("H")[0]]))
            if value <= border:
                listed.append(Anomaly(head, "dead", value, border))
    return listed


def _means(scores: Scores, heads: set[str]) -> list[tuple[str, float]]:
    return [(str(head), value) for head, value in scores.items() if str(head) in heads]


def _head(address: str) -> Head:
    head = parse(address)
    assert isinstance(head, Head)  # the atlas has heads
    return head
