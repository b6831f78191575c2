"""Every part that the page can ask of an atlas, by its key."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import InputError, NotInAtlasError, NotMadeError
from headscope.glossary import ATLAS_SCORE_TERMS
from headscope.views.atlas_keys import AtlasKey, parse_atlas_key
from headscope.views.atlas_maps import columns_part, head_map_part, maps_part
from headscope.views.atlas_tokens import examples_part, stack_props, tokens_part
from headscope.views.contract.atlas import (
    AtlasAggregateProps,
    AtlasAnomaliesProps,
    AtlasAnomalyProps,
    AtlasCloudProps,
    AtlasCorpusProps,
    AtlasDistancesProps,
    AtlasLinesProps,
    AtlasMapProps,
    AtlasNeighboursProps,
    AtlasPatternProps,
    AtlasPlaceProps,
    AtlasProps,
    AtlasScoresProps,
    AtlasSearchProps,
    GatheringProps,
    NearPointProps,
)
from headscope.views.contract.patterns import ImageProps
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.atlases import Atlas


@dataclass(frozen=True)
class AtlasNames:
    """How the page knows an atlas: the id of its parts, its name in links, a title, and the model to run (or "")."""

    id: str = ""
    name: str = ""
    title: str = ""
    model: str = ""


def atlas_part(atlas: "Atlas", key: str, names: AtlasNames | None = None) -> Part:
    """What a key asks for: the keys are those of `views/contract/`. Nothing is drawn or computed for all heads."""
    part_key = parse_atlas_key(key)
    if part_key.kind == "atlas":
        return _atlas(atlas, names or AtlasNames())
    return _MAKERS[part_key.kind](atlas, part_key)


def _atlas(atlas: "Atlas", names: AtlasNames) -> Part:
    index = atlas.index
    corpus = index["corpus"]
    props = AtlasProps(
        id=names.id,
        name=names.name,
        title=names.title or corpus_title(corpus),
        model=names.model,
        model_name=atlas.model,
        space=index["options"]["space"],
        corpus=AtlasCorpusProps(**{name: corpus[name] for name in AtlasCorpusProps.__dataclass_fields__}),
        has_vectors=index["has_vectors"],
        has_scores=atlas.has_scores,
        lacks=_lacks(atlas),
        places=_places(atlas),
        stacks=[stack_props(atlas, stack) for stack in atlas.n_tokens],
        maps=_maps(atlas),
        absent=index["absent"],
        images=bool(atlas.pictures()),
    )
    return Part("atlas", props)


def corpus_title(corpus: Mapping[str, Any]) -> str:
    """What a corpus is called: a list in Python has no name, so it is counted."""
    n_examples = corpus["n_examples"]
    counted = f"{n_examples:,} {'example' if n_examples == 1 else 'examples'}"
    return counted if corpus["name"] == "list" else corpus["name"]


def _lacks(atlas: "Atlas") -> str:
    if atlas.index["has_vectors"]:
        return ""
    return "This atlas holds maps and norms, not the queries and keys: no lines, patterns, neighbours or other maps."


def _places(atlas: "Atlas") -> list[AtlasPlaceProps]:
    from headscope.sites import Head, parse

    places = []
    for place in atlas.places.values():
        parsed = parse(place.address)
        head = parsed.index if isinstance(parsed, Head) else None
        layer = parsed.site.layer if isinstance(parsed, Head) else parsed.layer
        clouds = [AtlasCloudProps(cloud.role, cloud.stack) for cloud in place.clouds]  # type: ignore[arg-type]
        places.append(AtlasPlaceProps(place.address, place.site, layer, head, place.is_causal, clouds))
    return places


def _maps(atlas: "Atlas") -> list[AtlasMapProps]:
    maps = []
    for name in atlas.maps():
        n_heads = sum(atlas.has_map(address, name) for address in atlas.addresses)
        if n_heads:
            maps.append(AtlasMapProps(name.method, name.dims, name.coordinates, n_heads))
    return maps


def _scores(atlas: "Atlas", key: AtlasKey) -> Part:
    if not atlas.has_scores:
        raise NotMadeError("the scores of this atlas have not been computed yet.")
    rows = atlas.scores()
    arrays = {name: np.array([getattr(row, name) for row in rows.values()], np.float32) for name in ATLAS_SCORE_TERMS}
    return Part("scores", AtlasScoresProps([str(head) for head in rows]), arrays)


def _anomalies(atlas: "Atlas", key: AtlasKey) -> Part:
    if not atlas.has_scores:
        raise NotMadeError("anomalies are found by scores, and those of this atlas have not been computed yet.")
    rows = [
        AtlasAnomalyProps(anomaly.head, anomaly.kind, anomaly.label, anomaly.value, anomaly.threshold)
        for anomaly in atlas.anomalies()
    ]
    return Part("anomalies", AtlasAnomaliesProps(rows))


def _lines(atlas: "Atlas", key: AtlasKey) -> Part:
    from headscope.atlases.stored_patterns import note_of, strongest_keys

    place = atlas.place(key.head)
    keys, weights = strongest_keys(atlas, place, key.top)
    props = AtlasLinesProps(place.address, note_of(atlas, place))
    return Part("lines", props, {"keys": keys, "weights": weights})


def _distances(atlas: "Atlas", key: AtlasKey) -> Part:
    from headscope.atlases.stored_patterns import pair_sample

    place = atlas.place(key.head)
    pairs = pair_sample(atlas, place, key.coordinates, key.pairs)
    numbers = [value if np.isfinite(value) else None for value in (pairs.pearson(), pairs.spearman())]
    props = AtlasDistancesProps(place.address, key.coordinates, pairs.n_pairs, *numbers)
    arrays = {
        "distance": pairs.distances.astype(np.float32),
        "logit": pairs.logits.astype(np.float32),
        "query": pairs.queries.astype(np.int32),
        "key": pairs.keys.astype(np.int32),
    }
    return Part("distances", props, arrays)


def _aggregate(atlas: "Atlas", key: AtlasKey) -> Part:
    from headscope.atlases.stored_patterns import mean_by_position, note_of

    place = atlas.place(key.head)
    weights, counts = mean_by_position(atlas, place)
    props = AtlasAggregateProps(place.address, atlas.index["corpus"]["n_sampled"], note_of(atlas, place))
    return Part("aggregate", props, {"weights": weights, "counts": counts})


def _pattern(atlas: "Atlas", key: AtlasKey) -> Part:
    from headscope.atlases.stored_patterns import example_pattern, note_of

    place = atlas.place(key.head)
    pattern = example_pattern(atlas, place, key.example)
    stacks = [cloud.stack for cloud in place.clouds]
    firsts = (pattern.first_query, pattern.first_key)
    props = AtlasPatternProps(place.address, key.example, stacks[0], stacks[1], *firsts, note_of(atlas, place))
    arrays = {"weights": pattern.weights.float().numpy()}
    if pattern.value_norm is not None:
        arrays["value_norm"] = pattern.value_norm.float().numpy()
    return Part("pattern", props, arrays)


def _hits(atlas: "Atlas", key: AtlasKey) -> Part:
    from headscope.atlases.search import matching_rows

    hits = matching_rows(atlas, key.text, regex=key.regex, ignore_case=key.ignore_case)
    return Part("hits", AtlasSearchProps(key.text, sum(map(len, hits.values()))), _rows(hits))


def _search(atlas: "Atlas", key: AtlasKey) -> Part:
    search = atlas.search(key.text, regex=key.regex, ignore_case=key.ignore_case)
    heads = [GatheringProps(**asdict(head)) for head in search.heads]
    return Part("search", AtlasSearchProps(key.text, search.n_hits, search.note, heads), _rows(search.hits))


def _rows(hits: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"hits:{stack}": rows.astype(np.int32) for stack, rows in hits.items()}


def _neighbours(atlas: "Atlas", key: AtlasKey) -> Part:
    place = atlas.place(key.head)
    roles = [cloud.role for cloud in place.clouds]
    if key.role not in roles:
        raise InputError(f"{place.address} has {' and '.join(roles)}, not {key.role[:20]!r}.")
    points = atlas.neighbours(place.address, key.row, role=key.role, k=key.k)  # type: ignore[arg-type]
    near = [NearPointProps(**asdict(point)) for point in points]
    return Part("neighbours", AtlasNeighboursProps(place.address, near))


def _image(atlas: "Atlas", key: AtlasKey) -> Part:
    files = atlas.pictures()
    if not files:
        raise NotInAtlasError("this atlas holds no pictures.")
    from headscope.atlases.example_pictures import read_picture

    pixels, about = read_picture(files, key.example)
    stack = next(iter(atlas.n_tokens))
    props = ImageProps(stack, tuple(about["size"]), tuple(about["patch"]), about["note"])
    return Part("image", props, {"pixels": pixels.numpy()})


_MAKERS: dict[str, Callable[["Atlas", AtlasKey], Part]] = {
    "examples": lambda atlas, key: examples_part(atlas),
    "tokens": lambda atlas, key: tokens_part(atlas, key.stack),
    "maps": maps_part,
    "map": head_map_part,
    "columns": columns_part,
    "scores": _scores,
    "anomalies": _anomalies,
    "lines": _lines,
    "distances": _distances,
    "aggregate": _aggregate,
    "pattern": _pattern,
    "hits": _hits,
    "search": _search,
    "neighbours": _neighbours,
    "image": _image,
}
