"""The report of heads as one HTML file: script, style and numbers in it, and nothing from anywhere else."""

import html
import importlib.resources
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headscope import __version__
from headscope.analysis.measures.roles import Finding
from headscope.glossary import group, in_order, label, meaning, role_family, role_short, unit
from headscope.reports.findings import stacks
from headscope.scores import Scores
from headscope.sites import Head
from headscope.views.saved_page import page_files

if TYPE_CHECKING:
    from headscope.reports.heads_report import HeadsReport

_DIGITS = 5
_STACKS = {
    "": "",
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross-attention",
    "vision": "Vision",
    "text": "Text",
}


def page(report: "HeadsReport") -> str:
    """The page, complete."""
    from headscope.reports.trust_of_heads import trust_note  # which writes its own page with this module

    about = report.about
    corpus = about["corpus"]
    where = f"{about['model']} on {corpus['name']}"
    notes = [trust_note(about["trust"])] if about.get("trust") else []
    summary = (
        f"{len(report.roles)} heads over {corpus['n_examples']:,} examples of {corpus['name']} ({corpus['about']}). "
        f"{' '.join([*about['notes'], *notes])}"
    )
    footer = (
        f"Headscope {__version__}. Criteria of roles are those of the papers where they state one; heads.json and "
        "scores.parquet beside this page hold all numbers."
    )
    parts = {
        "title": f"What the heads of {about['model']} do",
        "where": where,
        "about": summary,
        "footer": footer,
    }
    return fill_frame("heads.html", parts, *script_and_style(), data_of(report))


def fill_frame(frame: str, texts: Mapping[str, str], script: str, style: str, data: dict[str, Any]) -> str:
    """A page of its frame (a file of this package), its texts, and the data that its script draws."""
    filled = {name: html.escape(text) for name, text in texts.items()}
    filled |= {"style": style, "script": script, "data": _script_json(data)}
    template = importlib.resources.files("headscope.reports").joinpath(frame).read_text(encoding="utf-8")
    # All at once: what is filled in is never looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda placeholder: filled[placeholder[1]], template)


def script_and_style() -> tuple[str, str]:
    """The script and the style that draw it, as `scripts/web` built them."""
    return page_files(("report.js", "report.css"))


def data_of(report: "HeadsReport") -> dict[str, Any]:
    """All that the page draws."""
    heads = list(report.roles)
    place = {head: at for at, head in enumerate(heads)}
    return {
        "heads": [str(head) for head in heads],
        "siteOf": [str(head.site) for head in heads],
        "indexOf": [head.index for head in heads],
        "stacks": [
            {
                "name": name,
                "label": _STACKS.get(name, name.capitalize()),
                "layers": [
                    {"site": str(site), "heads": [place[head] for head in stack_heads if head.site == site]}
                    for site in dict.fromkeys(head.site for head in stack_heads)
                ],
            }
            for name, stack_heads in stacks(heads).items()
        ],
        "measures": [_measure(name, report.scores[name], heads) for name in in_order(list(report.scores))],
        "roles": [
            verdict.to_json() | _marks(verdict.findings[0] if verdict.findings else None)
            for verdict in report.roles.values()
        ],
        "findings": [asdict(answer) for answer in report.outcome],
        "cases": [[asdict(case) for case in report.cases.get(head, [])] for head in heads],
        "thumbnails": report.thumbnails,
        "absent": report.about["absent"],
        "trust": _trust(report, heads),
    }


def _trust(report: "HeadsReport", heads: list[Head]) -> list[dict[str, Any] | None] | None:
    """The verdict of each head by a report of trust, None for heads that it has not tested."""
    trust = report.about.get("trust")
    return None if trust is None else [trust["heads"].get(str(head)) for head in heads]


def _marks(finding: Finding | None) -> dict[str, str]:
    """The family of a role, which has a colour, and its short form."""
    if finding is None:
        return {"family": role_family(None), "short": ""}
    return {"family": role_family(finding.kind), "short": role_short(finding.kind, finding.role)}


def _sentence(phrase: str) -> str:
    return phrase[:1].upper() + phrase[1:]


def _measure(name: str, scores: Scores, heads: list[Head]) -> dict[str, Any]:
    bounds = [scores.intervals.get(head, (math.nan, math.nan)) for head in heads]
    props = {
        "name": name,
        "label": label(name),
        "about": _sentence(meaning(name)),
        "unit": unit(name),
        "group": group(name),
        "is_part": "/" in name,
        "n_samples": scores.n_samples,
        "baseline": scores.baseline,
        "values": [scores.values_by_head.get(head, math.nan) for head in heads],
    }
    if scores.intervals:
        props |= {"low": [low for low, _ in bounds], "high": [high for _, high in bounds]}
    if scores.baselines:
        props["baselines"] = [scores.baselines.get(head, math.nan) for head in heads]
    return props


def plain(value: Any) -> Any:
    """For JSON: what is not a number becomes null, others keep five digits."""
    if isinstance(value, dict):
        return {str(key): plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _script_json(data: dict[str, Any]) -> str:
    """JSON that no HTML parser takes for anything else, whatever tokens say."""
    text = json.dumps(plain(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
