"""What a figure is of, on lines of its own: the input and the edits of its run."""

from headscope.traces import Difference, Trace
from headscope.views.trace_part import run_name


def caption_lines(trace: Trace) -> list[str]:
    """The input and the edits of a run, a line each: they stand on every figure of it. A difference names both runs."""
    if isinstance(trace, Difference):
        comparison = trace.comparison
        return [] if comparison is None else [f"A: {run_name(comparison.a)} − B: {run_name(comparison.b)}"]
    texts = () if trace.inputs is None else (trace.inputs.text, trace.inputs.pair, trace.inputs.target)
    text = " / ".join(" ".join(text.split()) for text in texts if text)
    return [*([f"Input: “{text}”"] if text else []), *([edits_line(trace)] if trace.edits else [])]


def edits_line(trace: Trace) -> str:
    """`Edited: silence('L3H2'), uniform('L2H1')`."""
    return f"Edited: {', '.join(edit.removeprefix('hs.') for edit in trace.edits)}"
