"""What the heavier measures say of the built-in models: induced trees, similar heads, alignment, layer probes.

Needs UD English EWT, CoNLL-2000 and Tatoeba of `../shared/data`, and all-minilm of `../shared/weights`. Samples are
fixed; figures are in docs/structure.md.

python benchmarks/structure.py                       # some minutes
python benchmarks/structure.py trees --limit 100     # one part of it: trees, similarity, alignment, probes
"""

import argparse
import random
import sys
import time
from pathlib import Path

import headscope as hs
from headscope.analysis.structure.alignment import cross_alignment
from headscope.analysis.structure.probes import layer_probes
from headscope.analysis.structure.similarity import head_similarity
from headscope.analysis.structure.trees import ORIENTATIONS, branching_baselines, induced_trees
from headscope.corpora import Example

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "training"))


def treebank(data: Path, limit: int) -> hs.corpora.Corpus:
    return hs.corpus(data / "ud_english_ewt" / "en_ewt-ud-dev.conllu.xz", limit=limit)


def trees(models: list[hs.Model], data: Path, limit: int) -> None:
    corpus = treebank(data, limit)
    for name, values in branching_baselines(list(corpus)).items():
        accuracies = ", ".join(f"{group} {100 * value:.1f}" for group, value in values.items())
        print(f"root not given, {name}: {accuracies}")
    for model in models:
        induced = induced_trees(model, corpus)
        print(f"\n{model.name}\n{induced}")
        for group in ("all", "words"):
            best, head, value = induced.best(group)
            low, high = induced.scores[best][group].intervals[head]
            print(f"best of {group}: {head}, {best}: {100 * value:.1f} ({100 * low:.1f}–{100 * high:.1f})")
        for orientation in ORIENTATIONS:
            layers = induced.layers(orientation)
            print(
                orientation, *(f"{site} {100 * mean:.1f} ({head} {100 * top:.1f})" for site, mean, head, top in layers)
            )


def similarity(models: list[hs.Model], data: Path, limit: int) -> None:
    for model in models:
        table = head_similarity(model, treebank(data, limit))
        within, across = table.by_layer()
        print(f"\n{model.name}: {table.n_queries} queries; JSD within layers {within:.3f}, across {across:.3f}")
        print(f"the map keeps {100 * table.map().share:.0f} %; most apart", *table.apartness().top(3))
        pairs = [
            (table.between(head, other), head, other) for head in table.heads for other in table.heads if head < other
        ]
        print("most alike", sorted(pairs)[:3])
        for group in table.clusters(6):
            print(len(group), *group)


def alignment(data: Path, limit: int) -> None:
    from corpora import translation_pairs

    pairs = [
        (split, Example(f"tatoeba:{number}", text=english, target=russian))
        for number, (split, english, russian, _) in enumerate(translation_pairs(data))
    ]
    draw = random.Random(0)
    test = draw.sample([pair for split, pair in pairs if split == "test"], limit)
    train = draw.sample([pair for split, pair in pairs if split == "train"], 100 * limit)
    print(f"\n{cross_alignment(hs.load('builtin:translate'), test, more=train)}")


def probes(models: list[hs.Model], data: Path, limit: int) -> None:
    chunks = hs.corpus(data / "conll2000" / "train.txt.xz", limit=limit)
    for model in models:
        for corpus, tag in ((treebank(data, limit), "upos"), (chunks, "chunk")):
            print(f"\n{model.name}\n{layer_probes(model, corpus, tag, limit=None)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["trees", "similarity", "alignment", "probes"])
    parser.add_argument("--limit", type=int, default=300, help="sentences; probes take twice as many")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    options = parser.parse_args()
    data = options.shared / "data"
    models = [
        hs.load("builtin:bert"),
        hs.load("builtin:gpt"),
        hs.load(options.shared / "weights/all-minilm-l6-v2-fp16"),
    ]
    for part in options.parts:
        began = time.perf_counter()
        if part == "alignment":
            alignment(data, options.limit)
        else:
            {"trees": trees, "similarity": similarity, "probes": probes}[part](
                models, data, options.limit * (2 if part == "probes" else 1)
            )
        print(f"\n{part}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
