"""What two runs have in common, what edits did, and what passed through the layers of a run."""

from dataclasses import dataclass
from typing import Literal

from headscope.choices import By, Way

QuickVerdict = Literal["not supported", "mixed", "not tested"]
"""What the quick set can say of a head. One input cannot support an attention."""


@dataclass(frozen=True)
class PairedStackProps:
    """A stack of the first run and its partner in the second; `texts` names their pairs, `same` those that agree."""

    stack: str
    other: str
    texts: list[str]
    same: list[bool]
    is_whole: bool


@dataclass(frozen=True)
class AlignmentProps:
    """Which tokens of two runs stand for the same. `no_difference` says why they cannot be subtracted."""

    by: By
    line: str
    no_difference: str
    stacks: list[PairedStackProps]


@dataclass(frozen=True)
class RankingProps:
    """The heads of one model, the best for a relation first; `note` says why none is, if none is."""

    model: str
    heads: list[str]
    n_layers: int
    note: str


@dataclass(frozen=True)
class RelationProps:
    """From one word to another, in two runs."""

    source: str
    target: str
    a: RankingProps
    b: RankingProps


@dataclass(frozen=True)
class ActivationsProps:
    """One stack, layer by layer. `places` name where the residual stream is read; `texts` what `lens` counts in.

    Arrays: `norm`, `cosine` [place, token]; `attention`, `cross`, `mlp` [layer, token], norms of what was written; of
    the tokens from `first` on: `lens`, `logprob` [place, token, k], `rank`, `answer` [place, token], `neuron`, `value`,
    `share` [layer, token, k], and by attention layer (`heads/L3`) what its heads wrote [head, token]. Of two runs there
    are `a:norm` and `b:norm`, and so on: `activation_differences.py` lists them.
    """

    stack: str
    places: list[str]
    layers: list[str]
    first: int
    count: int
    texts: list[str]
    n_neurons: int
    is_sum: bool
    no_lens: str
    no_neurons: str
    no_written: str


@dataclass(frozen=True)
class EffectProps:
    """What edits did to the output at positions of a stack, from `first` on (−1: a classifier, which answers once).

    Arrays: `kl` [position], `candidates` [position, rank] (places in `texts`, −1 for none), `before` and `after` their
    log-probabilities. The losses are those of the text itself, where the model predicts it.
    """

    stack: str
    first: int
    texts: list[str]
    mean_kl: float
    loss_before: float | None
    loss_after: float | None


@dataclass(frozen=True)
class WrittenProps:
    """The text that the original (`before`) and the edited model (`after`) write: `n` tokens at most."""

    n: int
    before: str
    after: str


@dataclass(frozen=True)
class GoldProps:
    """The words of the sentence: the positions of their tokens in `stack`, and where its tree is known the head of each
    (−1: the root) with the relation. Empty where the input comes without words."""

    stack: str
    words: list[list[int]]
    forms: list[str]
    heads: list[int]
    relations: list[str]


@dataclass(frozen=True)
class TreeProps:
    """The tree that a head's attention induces over those words: the head of each (−1: the root, −2: without tokens).

    Beside the gold tree: which words look most at their own head, how many words have their head in the tree, out of
    how many, as a share, and what branching would give. `no_tree` says why there is none.
    """

    head: str
    way: Way
    heads: list[int]
    agrees: list[bool]
    uas: float | None
    baselines: dict[str, float]
    n_words: int
    n_right: int
    no_tree: str = ""


@dataclass(frozen=True)
class RelevanceProps:
    """Where one logit came from: the answer `text` at `position` (−1: the whole input), less `other` where it is a
    contrast. The tokens of `stacks` carry `carried` of it together; `bias_share` is the share that no input carries.

    Arrays: `tokens/STACK` [token]; of the heads, `share` of their layer and `raw` in units of the logit [head].
    """

    rule: Literal["cp", "attn"]
    position: int
    text: str
    other: str | None
    logit: float
    carried: float
    bias_share: float | None
    heads: list[str]
    stacks: list[str]


@dataclass(frozen=True)
class BadgeProps:
    """The quick set on one head: the verdict, a sentence, and the figures behind it (none where it was not tested).

    `change_uniform`, `change_identity`, `change_permuted` are total variation, `tau_gradient` is Kendall's τ-b of
    attention with gradient × input; None where it is not known.
    """

    head: str
    verdict: QuickVerdict
    sentence: str
    figures: dict[str, float | None]


@dataclass(frozen=True)
class TrustProps:
    """Whether an answer of the run needs the attention of heads. `answer` says which answer; a change of the output up
    to `same_output` counts as none; permuted figures are the median of `n_permutations`.
    """

    answer: str
    same_output: float
    n_permutations: int
    badges: list[BadgeProps]
