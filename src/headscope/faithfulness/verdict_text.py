"""What the tests of a head say, in sentences."""

from collections.abc import Mapping

from headscope.faithfulness.verdict_rule import TrustVerdict, VerdictPart

SUMMARIES: dict[TrustVerdict, str] = {
    "supported": "Its attention explains the output as far as these tests can tell.",
    "mixed": "The tests disagree, or do not decide.",
    "not supported": "These tests do not support reading its attention as an explanation of the output.",
    "not tested": "Too little could be tested.",
}
_LEADS = {
    "agreement": {
        "pass": "Attention ranks tokens much as the output depends on them",
        "fail": "Attention does not rank tokens as the output depends on them",
        "unclear": "Whether attention ranks tokens as the output depends on them is not decided",
        "not tested": "Agreement was not tested",
    },
    "need": {
        "pass": "Permuting the pattern, and making it uniform, changes the output",
        "fail": "The pattern can be {replaced} with hardly a change of the output",
        "unclear": "Whether the output needs this pattern is not decided",
        "not tested": "Whether the output needs this pattern was not tested",
    },
    "exclusive": {
        "pass": "No far pattern with the same output was found for most texts",
        "fail": "Far patterns give the same output for most texts",
        "unclear": "Whether other patterns give the same output is not decided",
        "not tested": "Whether other patterns give the same output was not tested",
    },
}


def sentence(part: VerdictPart, figures: Mapping[str, float]) -> str:
    """One part in a sentence, with its figures (means over texts, by name)."""
    lead = _LEADS[part.name][part.outcome]
    if part.outcome == "not tested":
        return f"{lead}: {part.reason.removesuffix('.')}."
    lead = lead.format(replaced=ways_without_change(figures, part.threshold))
    return f"{lead}: {_evidence(part, figures)}."


def number(value: float) -> str:
    """Two digits, with a real minus sign; an en dash where there is none.

    >>> number(-0.049), number(-0.003), number(float("nan"))
    ('−0.05', '0.00', '–')
    """
    if value != value:
        return "–"
    digits = f"{value:.2f}"
    return "0.00" if digits == "-0.00" else digits.replace("-", "−")


def ways_without_change(figures: Mapping[str, float], threshold: float) -> str:
    """Which of the two changes are small; where neither mean is, the smaller of the two still is in most texts."""
    ways = {"permuted": figures["change_permuted"], "made uniform": figures["change_uniform"]}
    small = [way for way, change in ways.items() if change <= threshold]
    return " or ".join(small) or "either permuted or made uniform, depending on the text,"


def interval(part: VerdictPart) -> str:
    """The interval of a part's value."""
    return f"{number(part.low)} to {number(part.high)}"


def _evidence(part: VerdictPart, figures: Mapping[str, float]) -> str:
    if part.name == "agreement":
        return (
            f"τ-b {number(figures['tau_gradient'])} with gradient × input and {number(figures['tau_left_out'])} with "
            f"leave-one-out, which reach {number(figures['yardstick'])} with each other; the weaker is "
            f"{number(part.value)} ({interval(part)}) above half of that"
        )
    if part.name == "need":
        return (
            f"the smaller change is {number(part.value)} ({interval(part)}) of 1, and {number(part.threshold)} counts "
            f"as none; permuted {number(figures['change_permuted'])}, uniform {number(figures['change_uniform'])}"
        )
    return (
        f"in {100 * part.value:.0f} % of texts ({100 * part.low:.0f} to {100 * part.high:.0f}); the farthest is "
        f"{number(figures['farthest'])} nats away"
    )
