"""The page of a report of trust: one HTML file without scripts, that needs nothing else."""

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headscope import __version__
from headscope.faithfulness.trust_run import HeadTrust
from headscope.faithfulness.verdict_rule import Outcome, TrustVerdict
from headscope.faithfulness.verdict_text import SUMMARIES, number

if TYPE_CHECKING:
    from headscope.reports.trust_report import TrustReport

# Never by colour alone: every verdict has a sign and a word.
SIGNS: dict[TrustVerdict, str] = {"supported": "●", "mixed": "◐", "not supported": "○", "not tested": "–"}
_OUTCOMES: dict[Outcome, str] = {"pass": "✓ yes", "fail": "✗ no", "unclear": "? unclear", "not tested": "– not tested"}
_STYLE = """:root{color-scheme:light dark;--line:#e4e4e1;--ink:#1c1d1f;--soft:#5c6066;--back:#fbfbfa;--panel:#fff;
--supported:#1a6b3c;--mixed:#8a5a00;--not-supported:#a3262b;--not-tested:#5c6066}
@media(prefers-color-scheme:dark){:root{--line:#2b2e34;--ink:#eceef1;--soft:#a7adb6;--back:#131417;--panel:#1a1c20;
--supported:#6fcf97;--mixed:#e6b455;--not-supported:#f08a8d;--not-tested:#a7adb6}}
body{margin:0 auto;max-width:1180px;padding:24px;background:var(--back);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Arial,sans-serif;font-variant-numeric:tabular-nums}
h1{font-size:20px}h2{font-size:15px;margin:28px 0 6px}.soft{color:var(--soft)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:5px 14px 5px 0;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:400;color:var(--soft)}td.number{text-align:right}
.badge{font-weight:600}.supported{color:var(--supported)}.mixed{color:var(--mixed)}
.not-supported{color:var(--not-supported)}.not-tested{color:var(--not-tested)}
details{margin:0}summary{cursor:pointer}details ul{margin:4px 0 8px;padding-left:18px;white-space:normal}
.grid td{padding:3px 8px 3px 0;border:0}.grid a{text-decoration:none;font-size:16px}"""
_COLUMNS = (
    ("tau_gradient", "τ gradient"),
    ("tau_left_out", "τ left out"),
    ("tau_permuted", "τ if permuted"),
    ("change_permuted", "permuted"),
    ("change_uniform", "uniform"),
    ("change_identity", "identity"),
    ("change_previous_token", "previous"),
    ("change_no_attention", "none"),
    ("change_silenced", "head off"),
    ("farthest", "farthest JSD"),
    ("comprehensiveness", "compr."),
    ("random_comprehensiveness", "random"),
    ("sufficiency", "suff."),
    ("random_sufficiency", "random"),
)


def trust_page(report: "TrustReport") -> str:
    """The page, complete."""
    about = report.about
    title = f"Can the attention of {about['model']} be trusted?"
    notes = "".join(f"<li>{html.escape(note)}" for note in [*about["notes"], *_notes(report)])
    whole = [] if report.whole is None else [report.whole]
    return (
        '<!doctype html><html lang="en" data-headscope="trust"><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<style>{_STYLE}</style><body data-ready="true"><h1>{html.escape(title)}</h1>'
        f'<p class="soft">{html.escape(_about(report))}</p>{_counts(report)}'
        f"<h2>Every head</h2>{_grid(report)}"
        f"<h2>What the tests say of each head</h2>{_verdict_table(report.heads.values())}"
        f"<h2>Layers, and all heads together</h2>"
        '<p class="soft">All heads of a layer, or of the model, are replaced at once.</p>'
        f"{_verdict_table([*report.layers, *whole])}"
        f'<h2>All figures</h2><p class="soft">{html.escape(_FIGURES_NOTE)}</p>'
        f"{_figures([*report.heads.values(), *report.layers, *whole])}"
        f"<h2>How it was tested</h2><ul>{notes}</ul>"
        f'<p class="soft">Headscope {__version__}. trust.parquet and trust.json beside this page hold all numbers.</p>'
        "</body></html>"
    )


_FIGURES_NOTE = (
    "Means over texts. τ: Kendall's τ-b of attention with gradient × input, with leave-one-out, and of permuted "
    "attention with both (0 is chance). Changes of the output: total variation, 0 to 1, with other rows in place, and "
    "with the head's output at zero. Farthest JSD: of a pattern with the same output, in nats (at most 0.69). "
    "Comprehensiveness and sufficiency: how much the probability of the answer falls without the most attended tokens, "
    "and with them alone, beside as many random tokens."
)


def _about(report: "TrustReport") -> str:
    about = report.about
    score = about.get("score")
    shown_score = "" if score is None else f" {score['metric']} {number(score['value'])} on these {score['n']} texts."
    return f"{about['n_texts']} texts of {about['corpus']}, task {about['task'].replace('_', ' ')}.{shown_score}"


def _counts(report: "TrustReport") -> str:
    rows = "".join(
        f"<li>{_badge(verdict)}: {count} of {len(report.heads)} heads. {html.escape(SUMMARIES[verdict])}"
        for verdict, count in report.counts().items()
        if count
    )
    return f"<ul>{rows}</ul>"


def _badge(verdict: TrustVerdict) -> str:
    return f'<span class="badge {verdict.replace(" ", "-")}">{SIGNS[verdict]} {verdict}</span>'


def _grid(report: "TrustReport") -> str:
    """A row for each layer, a sign for each head."""
    cells: dict[str, dict[int, str]] = {}
    for head, head_trust in report.heads.items():
        tip = html.escape(f"{head_trust.name}: {head_trust.verdict}. {' '.join(head_trust.sentences)}")
        sign = (
            f'<a href="#{html.escape(head_trust.name)}" title="{tip}" aria-label="{tip}" style="text-decoration:none">'
        )
        classes = head_trust.verdict.replace(" ", "-")
        cells.setdefault(str(head.site), {})[head.index] = (
            f'<td>{sign}<span class="{classes}">{SIGNS[head_trust.verdict]}</span></a>'
        )
    columns = sorted({head.index for head in report.heads})
    first = "".join(f"<th>H{index}" for index in columns)
    body = "".join(
        f"<tr><th>{html.escape(name)}{''.join(row.get(index, '<td>') for index in columns)}"
        for name, row in cells.items()
    )
    return f'<div class="scroll"><table class="grid" style="width:auto"><tr><th>{first}{body}</table></div>'


def _verdict_table(trusts: Iterable[HeadTrust]) -> str:
    rows = []
    for head_trust in trusts:
        cells = "".join(f"<td>{_OUTCOMES[part.outcome]}" for part in head_trust.parts)
        sentences = "".join(f"<li>{html.escape(sentence)}" for sentence in head_trust.sentences)
        name = html.escape(head_trust.name)
        evidence = f"<details><summary>{head_trust.n_texts} texts</summary><ul>{sentences}</ul></details>"
        rows.append(f'<tr id="{name}"><td>{name}<td>{_badge(head_trust.verdict)}{cells}<td>{evidence}')
    head = "<tr><th>Head<th>Verdict<th>Agrees<th>Needed<th>Exclusive<th>Evidence"
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'


def _figures(trusts: Iterable[HeadTrust]) -> str:
    head = "".join(f"<th>{html.escape(label)}" for _, label in _COLUMNS)
    rows = []
    for head_trust in trusts:
        cells = "".join(
            f'<td class="number">{number(head_trust.figures.get(name, float("nan")))}' for name, _ in _COLUMNS
        )
        rows.append(f"<tr><td>{html.escape(head_trust.name)}{cells}")
    return f'<div class="scroll"><table><tr><th>Head{head}{"".join(rows)}</table></div>'


def _notes(report: "TrustReport") -> list[str]:
    tests = report.about["tests"]
    rows = "the row that the answer is read from" if tests["query_rows"] == "answer" else "the rows of all queries"
    adversary = tests["adversary"]
    searched = (
        "No adversary was searched for, so no head can be exclusive."
        if adversary is None
        else f"Adversary: {adversary['patterns']} patterns, {adversary['steps']} steps of Adam at {adversary['rate']}, "
        f"the same output up to {adversary['epsilon']}"
        + ("." if tests["always_search"] else "; not searched where uniform or permuted rows were far enough already.")
    )
    seeds = report.about.get("seed_change")
    return [
        f"Replaced: {rows}. Permutations: {tests['n_permutations']}, special tokens fixed. Seed {tests['seed']}.",
        f"Leave-one-out: {tests['removal']}. Gradient × input: of the embeddings that enter the first layer, with all "
        "patterns held fixed.",
        searched,
        "No models of other seeds were given: a change of the output counts from 0.05 on."
        if seeds is None
        else f"Outputs of models with other seeds are {number(seeds)} apart.",
        "Each part is decided at 0.05 after Holm's correction for the number of heads, by a sign-flip test over texts; "
        "intervals are 95 % bootstrap intervals of one head, not corrected.",
    ]
