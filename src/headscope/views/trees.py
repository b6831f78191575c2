"""Trees beside a head: the gold dependencies of a sentence, and the tree that the head's own attention induces."""

from collections.abc import Sequence

import numpy as np

from headscope.analysis.structure.trees import (
    BASELINES,
    ORIENTATIONS,
    Sentence,
    branching,
    sentence_of,
    tree_of,
)
from headscope.choices import Way
from headscope.corpora import Example, align
from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces import Trace
from headscope.views.contract import GoldProps, TreeProps
from headscope.views.wire import Part

# The tree of more words takes long to find and cannot be read.
MOST_WORDS = 160


def text_stack(trace: Trace) -> str:
    """The stack that reads the text."""
    return next((stack for stack in ("encoder", "text", "main") if stack in trace.tokens), next(iter(trace.tokens)))


def words_of_trace(trace: Trace) -> Example:
    """The words of a trace as an example without a tree: what a tree can be induced over where no gold one is known."""
    tokens = trace.tokens[text_stack(trace)]
    spans: dict[int, tuple[int, int]] = {}
    texts: dict[int, str] = {}
    for token in tokens:
        if token.special or token.word is None or token.start is None or token.end is None or token.segment != "A":
            continue
        start, end = spans.get(token.word, (token.start, token.end))
        spans[token.word] = (min(start, token.start), max(end, token.end))
        texts[token.word] = texts.get(token.word, "") + token.text
    order = sorted(spans)
    return Example("trace", words=tuple(texts[word] for word in order), spans=tuple(spans[word] for word in order))


def check_gold(trace: Trace, gold: Example) -> None:
    """Refuse a tree of another text than the trace's."""
    if not gold.words or not gold.spans:
        raise InputError(f"{gold.id} has no words: give an example of a treebank, as hs.corpus reads it from CoNLL-U.")
    text = None if trace.inputs is None else trace.inputs.text
    if text is not None and gold.text is not None and text != gold.text:
        raise InputError(
            f"the tree is of {gold.text[:60]!r}, and the trace of {text[:60]!r}: run the model on that text."
        )
    if not any(align(trace.tokens[text_stack(trace)], gold.spans)):
        raise InputError("no word of the tree lies in the tokens of this trace.")


def gold_part(trace: Trace, gold: Example | None) -> Part:
    """`gold`: the words of the sentence by the positions of their tokens, with their heads and relations."""
    if gold is None:
        return Part("gold", GoldProps("", [], [], [], []))
    stack = text_stack(trace)
    words = [list(group) for group in align(trace.tokens[stack], gold.spans)]
    return Part("gold", GoldProps(stack, words, list(gold.words), list(gold.heads), list(gold.relations)))


def tree_part(trace: Trace, gold: Example | None, place: str, way: Way) -> Part:
    """`tree/L3H2?way=A`: the head's own tree over the words, and how well it agrees with the gold one."""
    heads = trace.find(place)
    if len(heads) != 1:
        raise InputError(f"{place} is a layer of {len(heads)} heads: the tree is of one, as {heads[0]}.")
    head = heads[0]
    known = words_of_trace(trace) if gold is None else gold
    words = align(trace.tokens[text_stack(trace)], known.spans)
    reason = _no_tree(trace, head, known, words)
    if reason:
        return Part("tree", TreeProps(str(head), way, [], [], None, {}, 0, 0, reason))
    return Part("tree", _tree(head, attention_between(trace, head, words), known, words, way))


def attention_between(trace: Trace, head: Head, words: list[tuple[int, ...]]) -> np.ndarray:
    """Attention between words [from, to]: to a word the sum over its pieces, from it the mean (Clark et al., 2019)."""
    pattern = trace.pattern(head)
    to = np.stack([pattern[:, list(group)].sum(1) for group in words], 1)  # [token, word]
    return np.stack([to[list(group)].mean(0) if group else np.zeros(len(words)) for group in words])


def _no_tree(trace: Trace, head: Head, sentence: Example, words: list[tuple[int, ...]]) -> str:
    layer = trace.layers[head.site]
    stack = text_stack(trace)
    if head.kind == "cross" or head.stack != stack or layer.n_queries != len(trace.tokens[stack]):
        return f"{head} does not look from word to word of this sentence"
    if trace.readings:
        return "the trace is read otherwise than token by token"
    n_words = sum(bool(group) for group in words)
    if not 2 <= n_words <= MOST_WORDS:
        return f"trees are of 2 to {MOST_WORDS} words, and this text has {n_words}"
    return (
        ""
        if not sentence.heads or isinstance(sentence_of(sentence, words), Sentence)
        else "the sentence has no one root"
    )


def _tree(head: Head, weights: np.ndarray, example: Example, words: list[tuple[int, ...]], way: Way) -> TreeProps:
    has_tokens = [place for place, group in enumerate(words) if group]
    inner = weights[np.ix_(has_tokens, has_tokens)]
    sentence = sentence_of(example, words) if example.heads else None
    if not isinstance(sentence, Sentence):
        heads = _best_tree(inner, way)
        return TreeProps(str(head), way, _by_word(heads, has_tokens, len(words)), [], None, {}, 0, 0)
    heads = tree_of(inner, sentence.root, way)
    is_scored = sentence.counts["all"]
    n = int(is_scored.sum())
    trees = {name: branching(len(heads), sentence.root, name) for name in BASELINES}
    return TreeProps(
        head=str(head),
        way=way,
        heads=_by_word(heads, has_tokens, len(words)),
        agrees=_agrees(inner, sentence, has_tokens, len(words), way),
        uas=float((heads == sentence.heads)[is_scored].mean()),
        baselines={name: float((baseline == sentence.heads)[is_scored].mean()) for name, baseline in trees.items()},
        n_words=n,
        n_right=int((heads == sentence.heads)[is_scored].sum()),
    )


def _best_tree(weights: np.ndarray, way: Way) -> np.ndarray:
    """Without a gold root, the root under which the tree is likeliest."""
    edges = np.log(np.maximum(ORIENTATIONS[way](weights), 1e-35))
    best, most = np.full(len(weights), -1), -np.inf
    for root in range(len(weights)):
        tree = tree_of(weights, root, way)
        total = sum(edges[word, head] for word, head in enumerate(tree) if head >= 0)
        if total > most:
            best, most = tree, total
    return best


def _agrees(weights: np.ndarray, sentence: Sentence, word_numbers: list[int], n: int, way: Way) -> list[bool]:
    """Whether the strongest other word, by itself, is the gold head."""
    scores = ORIENTATIONS[way](weights).astype(float).copy()
    np.fill_diagonal(scores, -1.0)
    strongest = scores.argmax(1)
    agrees = [False] * n
    for place, word in enumerate(word_numbers):
        agrees[word] = bool(sentence.heads[place] >= 0 and strongest[place] == sentence.heads[place])
    return agrees


def _by_word(tree: np.ndarray, word_numbers: list[int], n: int) -> list[int]:
    """Heads by the numbers of all words; −1 is the root, −2 a word without tokens."""
    heads = [-2] * n
    for place, word in enumerate(word_numbers):
        heads[word] = -1 if tree[place] < 0 else word_numbers[int(tree[place])]
    return heads


def shown_places(groups: Sequence[Sequence[int]], words: list[list[int]]) -> list[float | None]:
    """Where each word stands among tokens as they are read: the middle of its pieces; None where it is left out."""
    place = {position: at for at, group in enumerate(groups) for position in group}
    middles: list[float | None] = []
    for positions in words:
        places = [place[position] for position in positions if position in place]
        middles.append(sum(places) / len(places) if places else None)
    return middles
