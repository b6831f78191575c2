"""Two views beside each other: of two runs whose heads cannot be subtracted, or that are to be seen as they are."""

import html
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headscope.errors import InputError
from headscope.views.table import Table
from headscope.views.trace_part import run_name
from headscope.views.view import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 200
_STYLE = (
    "body{margin:0;display:flex;height:100vh}"
    "iframe{flex:1;border:0;min-width:0}"
    "iframe+iframe{border-left:1px solid #9994}"
)


@dataclass(frozen=True, eq=False)
class PairView:
    """Two views, A and B: saved as one page or picture, or as one table with a column that says which."""

    a: View
    b: View

    def __repr__(self) -> str:
        return f"PairView({self.a!r}, {self.b!r})"

    @property
    def title(self) -> str:
        """What a page or a picture of it is called."""
        return f"A {self.a.title} | B {self.b.title}"

    def table(self) -> Table:
        """The numbers of both, A first, each strongest first."""
        tables = [view.table() for view in (self.a, self.b)]
        shared = [name for name in tables[0].columns if name in tables[1].columns]
        names = [f"A {run_name(self.a.trace)}", f"B {run_name(self.b.trace)}"]
        runs = [np.full(len(table), name, object) for name, table in zip(names, tables, strict=True)]
        columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in shared}
        return Table({"run": np.concatenate(runs)} | columns)

    def figure(
        self, *, theme: Literal["light", "dark"] = "light", width: Literal["column", "page"] | float | None = None
    ) -> "Figure":
        """Both pictures in one matplotlib figure.

        `width` is that of both together, as for one view: "column", "page", or inches. Each then has half of it.
        """
        from headscope.views.figures.canvas import THEMES, Figure
        from headscope.views.figures.paper import DPI, inches

        half, dpi = (None, _DPI) if width is None else (inches(width) / 2, DPI)
        pictures = [_picture(view, theme, half, dpi) for view in (self.a, self.b)]
        tall = max(picture.shape[0] for picture in pictures)
        # As high as each other where they may be scaled; at a paper's width, as they are, for the sake of the type.
        scales = [tall / picture.shape[0] if half is None else 1.0 for picture in pictures]
        sizes = [(picture.shape[1] * by, picture.shape[0] * by) for picture, by in zip(pictures, scales, strict=True)]
        wide = sum(size[0] for size in sizes)
        figure = Figure(figsize=(wide / dpi, tall / dpi), dpi=dpi, facecolor=THEMES[theme]["background"])
        left = 0.0
        for picture, (across, down) in zip(pictures, sizes, strict=True):
            axes = figure.add_axes((left / wide, 1 - down / tall, across / wide, down / tall))
            axes.imshow(picture, interpolation="antialiased")
            axes.axis("off")
            left += across
        return figure

    def html(self, *, budget: float = 18.0) -> str:
        """One page that needs nothing else: both, in halves of the window."""
        pages = [view.html(budget=budget / 2) for view in (self.a, self.b)]
        frames = "\n".join(
            f'<iframe title="{html.escape(view.title, quote=True)}" sandbox="allow-scripts allow-downloads" '
            f'srcdoc="{html.escape(text, quote=True)}"></iframe>'
            for view, text in zip((self.a, self.b), pages, strict=True)
        )
        head = f'<meta charset="utf-8"><title>{html.escape(self.title)}</title><style>{_STYLE}</style>'
        return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{frames}\n</body>\n</html>\n'

    def save(self, path: str | Path, *, width: Literal["column", "page"] | float | None = None) -> Path:
        """Write it, by suffix: .html (a page), .png .svg .pdf (a picture), .csv .json .parquet (the numbers).

        `width` is that of a picture for a paper, as `figure` takes it.
        """
        from headscope.files import write_file
        from headscope.views.save import PICTURES, check_path, check_width

        path = check_path(path)
        check_width(width, path)
        suffix = path.suffix.lower()
        if suffix == ".html":
            data = self.html().encode()
        elif suffix in PICTURES:
            picture = io.BytesIO()
            self.figure(width=width).savefig(picture, format=suffix[1:])
            data = picture.getvalue()
        else:
            table = self.table()
            encoders = {
                ".csv": table.csv,
                ".parquet": table.parquet,
                ".json": lambda: table.json({"title": self.title}),
            }
            data = encoders[suffix]()
        write_file(path, data)
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from headscope.views.saved_page import frame

        return {"text/html": frame(self.html(), self.title), "text/plain": repr(self)}


def side_by_side(first: View, second: View) -> PairView:
    """Two views of the same kind beside each other, of models that may differ in shape.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> hs.side_by_side(hs.head_view(trace, "L5H2"), hs.head_view(trace, "L3H2"))
    PairView(View('head', 'builtin:gpt', L5, 1 head), View('head', 'builtin:gpt', L3, 1 head))
    """
    for view in (first, second):
        if not isinstance(view, View):
            raise InputError(f"two views go side by side, as hs.head_view makes them, not {type(view).__name__}.")
    if first.kind != second.kind:
        raise InputError(f"a {first.kind} view and a {second.kind} view show different things: give two of a kind.")
    return PairView(first, second)


def _picture(view: View, theme: Literal["light", "dark"], width: float | None, dpi: int) -> np.ndarray:
    from matplotlib.image import imread

    buffer = io.BytesIO()
    view.figure(theme=theme, width=width).savefig(buffer, format="png", dpi=dpi)
    buffer.seek(0)
    return imread(buffer)
