"""The numbers of a head in an atlas: name, label and meaning."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AtlasScoreTerm:
    """A number of a head: its name in code, its label, and what it means."""

    name: str
    label: str
    meaning: str


ATLAS_SCORE_TERMS: dict[str, AtlasScoreTerm] = {
    term.name: term
    for term in (
        AtlasScoreTerm(
            "pearson",
            "Distance–logit correlation",
            "Pearson, per query over the keys of its example, mean over queries; Euclidean distance in the scaled "
            "space; −1 is exact",
        ),
        AtlasScoreTerm("spearman", "the same, by rank", "Spearman instead of Pearson"),
        AtlasScoreTerm("cosine_pearson", "the same, cosine", "cosine instead of Euclidean distance"),
        AtlasScoreTerm("pooled_pearson", "the same, pooled", "over all pairs at once instead of per query"),
        AtlasScoreTerm("map_pearson", "the same, on the map", "distance on the PCA map instead of the full space"),
        AtlasScoreTerm(
            "map_lifted_spearman", "by rank, on the lifted map", "distance on the PCA map of the lifted space"
        ),
        AtlasScoreTerm(
            "trustworthiness",
            "Trustworthiness of the map",
            "share of neighbours on the PCA map that are neighbours in the full space; 1 if all are, 0.5 by chance",
        ),
        AtlasScoreTerm(
            "key_bias_share",
            "Key-bias share",
            "share of the variance of logits that belongs to the key alone, which translated and scaled maps hide",
        ),
        AtlasScoreTerm("norm_gap", "Norm gap", "mean of |q| − |k|"),
        AtlasScoreTerm("norm_ratio", "Norm ratio", "median |q| over median |k|"),
        AtlasScoreTerm(
            "separation", "Separation", "distance of the centres of queries and keys, in spreads, before translation"
        ),
        AtlasScoreTerm("scale", "Scale c", "queries are multiplied by it and keys divided"),
    )
}
