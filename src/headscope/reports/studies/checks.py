"""A study: checks, each with what was published, for which model and data, and what came out here."""

import html
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from headscope import __version__
from headscope.errors import LoadError
from headscope.files import read_json, refuse_foreign, write_file
from headscope.reports.report_page import plain
from headscope.runs.run_folder import Folder

_STYLE = """:root{color-scheme:light dark;--line:#e4e4e1;--ink:#1c1d1f;--soft:#5c6066;--back:#fbfbfa}
@media(prefers-color-scheme:dark){:root{--line:#2b2e34;--ink:#eceef1;--soft:#a7adb6;--back:#131417}}
body{margin:0 auto;max-width:1080px;padding:24px;background:var(--back);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Arial,sans-serif;font-variant-numeric:tabular-nums}
h1{font-size:20px}h2{font-size:15px;margin:28px 0 6px}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:6px 16px 6px 0;border-bottom:1px solid var(--line)}
th,p.soft,li{font-weight:400;color:var(--soft)}"""

FORMAT = "headscope-study"
_FILES = ("study.json", "study.md", "index.html")
# Where our notes of a paper have no number.
NOT_QUOTED = "–"


@dataclass(frozen=True)
class Check:
    """One published claim: what was found then, and what was found here."""

    part: str
    what: str
    published: str
    ours: str


@dataclass(frozen=True, eq=False)
class Study:
    """The checks of one paper on one model and corpus. `published_for` says which model and data its numbers are of."""

    name: str
    title: str
    published_for: str
    model: str
    corpus: str
    n_examples: int
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)

    def __repr__(self) -> str:
        where = f"{self.model} on {self.n_examples} examples of {self.corpus}"
        return f"Study({self.name!r}: {len(self.checks)} checks of {where})"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return plain(asdict(self))

    def parts(self) -> dict[str, list[Check]]:
        """The checks by part of the paper."""
        checks_by_part: dict[str, list[Check]] = {}
        for check in self.checks:
            checks_by_part.setdefault(check.part, []).append(check)
        return checks_by_part

    def markdown(self) -> str:
        """As a page of Markdown."""
        lines = [f"# {self.title}", "", f"{self._about()}", ""]
        for part, checks in self.parts().items():
            lines += [f"## {part}", "", "| | published | here |", "|---|---|---|"]
            lines += [f"| {_cell(check.what)} | {_cell(check.published)} | {_cell(check.ours)} |" for check in checks]
            lines.append("")
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)]) + "\n"

    def html(self) -> str:
        """As one page that needs nothing else."""
        rows = []
        for part, checks in self.parts().items():
            cells = "".join(
                f"<tr><td>{html.escape(check.what)}<td>{html.escape(check.published)}<td>{html.escape(check.ours)}"
                for check in checks
            )
            rows.append(f"<h2>{html.escape(part)}</h2><table><tr><th>Check<th>Published<th>Here{cells}</table>")
        notes = "".join(f"<li>{html.escape(note)}" for note in self.notes)
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(self.title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f'<style>{_STYLE}</style><body data-ready="true"><h1>{html.escape(self.title)}</h1>'
            f'<p class="soft">{html.escape(self._about())}</p>{"".join(rows)}<h2>Notes</h2><ul>{notes}</ul>'
            f'<p class="soft">Headscope {__version__}</p></body></html>'
        )

    def save(self, folder: str | Path) -> Path:
        """Write study.json, study.md and index.html into a folder; gives the page."""
        place = Path(folder)
        check_folder(place)
        document = json.dumps({"format": FORMAT, **self.to_json()}, indent=1, ensure_ascii=False)
        for name, text in zip(_FILES, (document, self.markdown(), self.html()), strict=True):
            write_file(place / name, text.encode())
        return place / "index.html"

    def _about(self) -> str:
        return (
            f"{self.model} on {self.n_examples:,} examples of {self.corpus}. Published numbers are of "
            f"{self.published_for}: another model and other text, so read them beside ours, not against them."
        )


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that holds files of others where a study would be written."""
    folder = Path(folder)
    try:
        data = read_json(folder / "study.json", "")
    except LoadError:
        data = {}
    # Headscope 0.1.0 wrote no format.
    ours: set[str] = set(
        _FILES
        if data.get("format") == FORMAT or data.keys() == {study_field.name for study_field in fields(Study)}
        else ()
    )
    if (folder / "run" / "manifest.json").is_file():
        Folder(folder / "run").check()
        ours.add("run")
    refuse_foreign(folder, "a study", ours=ours, writes={*_FILES, "run"})


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
