"""A study: checks, each with what was published, for which model and data, and what came out here."""

import html
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headscope import __version__
from headscope.errors import LoadError
from headscope.files import read_json, refuse_foreign, write_file
from headscope.reports.report_page import plain
from headscope.reports.studies.charts import Chart
from headscope.runs.run_folder import Folder
from headscope.runs.shard import arrow

_STYLE = """:root{color-scheme:light dark;--line:#e4e4e1;--ink:#1c1d1f;--soft:#5c6066;--back:#fbfbfa}
@media(prefers-color-scheme:dark){:root{--line:#2b2e34;--ink:#eceef1;--soft:#a7adb6;--back:#131417}}
body{margin:0 auto;max-width:1080px;padding:24px;background:var(--back);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Arial,sans-serif;font-variant-numeric:tabular-nums}
h1{font-size:20px}h2{font-size:15px;margin:28px 0 6px}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:6px 16px 6px 0;border-bottom:1px solid var(--line)}
th,p.soft,li{font-weight:400;color:var(--soft)}
:root{--c1:#2563b8;--c2:#c2410c;--c3:#15803d;--c4:#7c3aed;--c5:#b4860b;--c6:#be185d}
@media(prefers-color-scheme:dark){:root{--c1:#7ab2f7;--c2:#f59e6b;--c3:#6cc98a;--c4:#b79bf5;--c5:#e0b84a;--c6:#f28bb8}}
@media(max-width:600px){th,td{padding-right:10px;font-size:13px}}
figure{margin:18px 0;max-width:640px}figcaption{color:var(--soft);font-size:13px}figcaption b{color:var(--ink)}
svg.chart{width:100%;display:block;font-size:12px}svg.mark{width:14px;height:14px}.chart text{fill:var(--soft)}
.key{display:flex;flex-wrap:wrap;gap:4px 16px;margin:4px 0 6px}.key span{display:flex;align-items:center;gap:6px}
.axis,.grid,.reference,.line,.stroke,.hollow{fill:none!important;stroke:var(--line)}.axis{stroke:var(--soft)}
.reference{stroke:var(--soft);stroke-dasharray:4 4}.line{stroke-width:1.5}.stroke,.hollow{stroke-width:2}
.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}
.c1 .stroke,.c1 .hollow,.line.c1{stroke:var(--c1)}.c2 .stroke,.c2 .hollow,.line.c2{stroke:var(--c2)}
.c3 .stroke,.c3 .hollow,.line.c3{stroke:var(--c3)}.c4 .stroke,.c4 .hollow,.line.c4{stroke:var(--c4)}
.c5 .stroke,.c5 .hollow,.line.c5{stroke:var(--c5)}.c6 .stroke,.c6 .hollow,.line.c6{stroke:var(--c6)}"""

FORMAT = "headscope-study"
_FILES = ("study.json", "study.md", "index.html")
_TABLE, TRAINING = "figures.parquet", "training"
_FIELDS_0_1 = ("name", "title", "published_for", "model", "corpus", "n_examples", "checks", "notes")
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
    """The checks of one paper on one model and corpus. `published_for` says which model and data its numbers are of.

    A study that trains has charts, a row of figures for each trained model, and `configuration`, which names its
    settings; `about` is then its first paragraph. `conclusion` says in words what came out, where a study does.
    """

    name: str
    title: str
    published_for: str
    model: str
    corpus: str
    n_examples: int
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)
    about: str = ""
    conclusion: str = ""
    configuration: str = ""
    charts: tuple[Chart, ...] = ()
    rows: tuple[dict[str, Any], ...] = field(default_factory=tuple, repr=False)

    def __repr__(self) -> str:
        where = f"{self.model} on {self.n_examples} examples of {self.corpus}"
        return f"Study({self.name!r}: {len(self.checks)} checks of {where})"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; the charts are in the page alone."""
        data = plain(asdict(self))
        del data["charts"]
        return data if self.configuration else {name: data[name] for name in _FIELDS_0_1}

    def parts(self) -> dict[str, list[Check]]:
        """The checks by part of the paper."""
        checks_by_part: dict[str, list[Check]] = {}
        for check in self.checks:
            checks_by_part.setdefault(check.part, []).append(check)
        return checks_by_part

    def markdown(self) -> str:
        """As a page of Markdown."""
        lines = [f"# {self.title}", "", self.introduction, ""]
        lines += [f"**{self.conclusion}**", ""] if self.conclusion else []
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
        rows += [chart.html() for chart in self.charts]
        notes = "".join(f"<li>{html.escape(note)}" for note in self.notes)
        conclusion = f"<p>{html.escape(self.conclusion)}</p>" if self.conclusion else ""
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(self.title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f'<style>{_STYLE}</style><body data-ready="true"><h1>{html.escape(self.title)}</h1>'
            f'<p class="soft">{html.escape(self.introduction)}</p>{conclusion}{"".join(rows)}'
            f'<h2>Notes</h2><ul>{notes}</ul><p class="soft">Headscope {__version__}</p></body></html>'
        )

    def save(self, folder: str | Path) -> Path:
        """Write study.json, study.md, index.html and, of trained models, figures.parquet; gives the page."""
        place = Path(folder)
        check_folder(place)
        document = json.dumps({"format": FORMAT, **self.to_json()}, indent=1, ensure_ascii=False)
        for name, text in zip(_FILES, (document, self.markdown(), self.html()), strict=True):
            write_file(place / name, text.encode())
        if self.rows:
            write_file(place / _TABLE, self._parquet())
        return place / "index.html"

    def _parquet(self) -> bytes:
        """A row for each trained model; a column for each figure that any of them has."""
        pa, pq = arrow()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({name: [row.get(name) for row in self.rows] for name in names}), sink)
        return sink.getvalue().to_pybytes()

    @property
    def introduction(self) -> str:
        """What was studied, and what the published numbers are of."""
        if self.about:
            return f"{self.about} Configuration {self.configuration}."
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
    ours: set[str] = set((*_FILES, _TABLE) if data.get("format") == FORMAT or data.keys() == set(_FIELDS_0_1) else ())
    if (folder / TRAINING / "settings.json").is_file():
        ours.add(TRAINING)
    if (folder / "run" / "manifest.json").is_file():
        Folder(folder / "run").check()
        ours.add("run")
    refuse_foreign(folder, "a study", ours=ours, writes={*_FILES, _TABLE, TRAINING, "run"})


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
