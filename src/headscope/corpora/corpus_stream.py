"""A corpus: a stream of examples that can be begun again, and never is a list in memory."""

import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from headscope.choices import OnError
from headscope.corpora import kind_detection
from headscope.corpora.benchmark_tasks import TASK_KINDS, is_json_lines, read_json_task, task_columns, task_fields
from headscope.corpora.conll import TAGS, read_conll
from headscope.corpora.conllu import read_conllu
from headscope.corpora.example import CorpusProblem, Example
from headscope.corpora.hub_datasets import is_hub_name, load_hub_dataset
from headscope.corpora.images import image_files, read_images
from headscope.corpora.python_objects import dataset_columns, read_dataset, read_items
from headscope.corpora.table_layout import layout_of
from headscope.corpora.tables import read_table, rows_of
from headscope.corpora.text import read_text
from headscope.corpora.text_lines import MAX_LINE, check_files
from headscope.errors import HeadscopeWarning, InputError, LoadError

Read = Callable[[], Iterator[Example | CorpusProblem]]
KINDS = (*kind_detection.FILE_KINDS, *TASK_KINDS, "images", "dataset", "list")
# Of what was skipped, this much is remembered word for word.
_N_REMEMBERED = 20


class Survey(NamedTuple):
    """What one pass over a corpus finds: how many examples, how many problems, and a hash of all that they say."""

    n_examples: int
    n_problems: int
    sha256: str


class Corpus(Iterable[Example]):
    """Examples from files or objects, read anew at every iteration.

    `about` says what was taken for what. With `on_error="skip"` whatever cannot be read is passed over: of the last
    pass `n_problems` counts it and `problems` tells the first 20; a warning says so once. `read()` gives everything as
    it comes, without the limit: examples, and a `Problem` for what cannot be read.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        about: str,
        read: Read,
        *,
        files: Sequence[Path] = (),
        limit: int | None = None,
        on_error: OnError = "fail",
    ):
        if on_error not in get_args(OnError):
            raise InputError(f"on_error is 'fail' or 'skip', got {on_error!r}.")
        if limit is not None and limit < 1:
            raise InputError(f"a limit is at least one example, got {limit}.")
        self.name, self.kind, self.about, self.files = name, kind, about, tuple(files)
        self.limit, self.on_error = limit, on_error
        self.n_problems = 0
        self.problems: list[CorpusProblem] = []
        self.read, self._has_warned = read, False

    def __repr__(self) -> str:
        limited = "" if self.limit is None else f", the first {self.limit}"
        return f"Corpus({self.name!r}: {self.about}{limited})"

    def __iter__(self) -> Iterator[Example]:
        self.n_problems, self.problems = 0, []
        yield from itertools.islice(self._good(), self.limit)
        if self.n_problems and not self._has_warned:
            self._has_warned = True
            n_skipped = f"{self.n_problems} of them" if self.n_problems > 1 else "one"
            warnings.warn(
                f"{self.name}: what could not be read was skipped ({n_skipped}), first {self.problems[0]}.",
                HeadscopeWarning,
                stacklevel=2,
            )

    def survey(self) -> Survey:
        """Go through it once: how much there is, and a hash by which the same corpus is known again."""
        digest, n_examples = hashlib.sha256(), 0
        for example in self:
            content = example.content()
            digest.update(len(content).to_bytes(8, "little") + content)
            n_examples += 1
        return Survey(n_examples, self.n_problems, digest.hexdigest())

    def _good(self) -> Iterator[Example]:
        for example in self.read():
            if isinstance(example, Example):
                yield example
                continue
            if self.on_error == "fail":
                raise InputError(f"{example}. Mend it, or pass over what cannot be read with on_error='skip'.")
            self.n_problems += 1
            if len(self.problems) < _N_REMEMBERED:
                self.problems.append(example)


def corpus(
    source: Any,
    *,
    kind: str | None = None,
    columns: Mapping[str, int | str] | Sequence[str] | None = None,
    limit: int | None = None,
    on_error: OnError = "fail",
    max_line: int = MAX_LINE,
) -> Corpus:
    """A corpus from a file, a folder of images, a Hugging Face dataset (the object, or its name as
    "hf:nyu-mll/glue:mrpc:validation"), a list of texts, or a function that gives an iterator of those.

    `kind` is guessed from the file's name and first lines unless given: "text" (a line a sentence), "pairs",
    "translation" or "table" (tab-separated), "conll2000", "conllu", "images"; tasks by name are "glue/mrpc" and its
    like, "superglue/boolq" and its like. `columns` say which column is what:
    `{"text": 1, "label": "class"}`; a list names the tags of CoNLL-2000 and its kind, `["pos", "chunk", "ner"]`.
    `print(corpus)` tells what was taken.

    >>> import headscope as hs
    >>> [example.text for example in hs.corpora.corpus(["One sentence.", "Another."])]
    ['One sentence.', 'Another.']
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"there is no kind of corpus {kind!r}: the kinds are {', '.join(KINDS)}.")
    options: dict[str, Any] = {"limit": limit, "on_error": on_error}
    if isinstance(source, Corpus):
        raise InputError("this is a corpus already: iterate over it, or make another from its source.")
    if is_hub_name(source):
        dataset, known = load_hub_dataset(str(source))
        return _dataset(dataset, columns if isinstance(columns, Mapping) else known, options)
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        if path.is_dir() and kind in (None, "images"):
            return _images(path, options)
        return _file(path, kind, columns, max_line, options)
    named = columns if isinstance(columns, Mapping) or columns is None else None
    if hasattr(source, "column_names"):
        return _dataset(source, named, options)
    if callable(source):
        name = getattr(source, "__name__", "stream")
        about = "what a function gives"
        make: Callable[[], Any] = source
        return Corpus(name, "list", about, lambda: read_items(make, name), **options)
    if isinstance(source, Sequence):
        about = f"a list of {len(source)}"
        return Corpus("list", "list", about, lambda: read_items(lambda: source, "list"), **options)
    hint = " An iterator can be read only once: give a function that makes it." if hasattr(source, "__next__") else ""
    raise InputError(
        f"{type(source).__name__} is not a corpus: give a file, a folder of images, a dataset, a list of texts or a "
        f"function.{hint}"
    )


def _file(path: Path, kind: str | None, columns: Any, max_line: int, options: dict[str, Any]) -> Corpus:
    check_files([path])
    are_tags = columns is not None and not isinstance(columns, Mapping)
    file_kind = kind or ("conll2000" if are_tags else kind_detection.kind_of(path, max_line=max_line))
    if file_kind in ("text", "conllu") and columns is not None:
        raise InputError(
            f"{path.name} is read as {file_kind!r}, whose columns are known: leave `columns` out, or say kind=."
        )
    if are_tags and file_kind != "conll2000":
        raise InputError(
            f"a list of columns names the tags of CoNLL-2000; for {file_kind!r} say which is which, by name."
        )
    if file_kind in TASK_KINDS and is_json_lines(path):
        read, about = partial(read_json_task, path, file_kind, max_line=max_line), f"the task {file_kind}, JSON lines"
        file_kind = "pairs" if "pair" in task_fields(file_kind) else "table"
    elif file_kind in TASK_KINDS:
        rows = rows_of(kind_detection.first_lines(path, max_line=max_line))
        layout = layout_of(rows, None, columns or task_columns(file_kind, path, rows[0] if rows else []))
        about, file_kind = f"the task {file_kind}, {layout.about}", layout.kind
        read = partial(read_table, path, layout, max_line=max_line)
    elif file_kind == "text":
        read, about = partial(read_text, path, max_line=max_line), "plain text, a line a sentence"
    elif file_kind == "conllu":
        read, about = partial(read_conllu, path, max_line=max_line), "CoNLL-U, dependency trees"
    elif file_kind == "conll2000":
        head = kind_detection.first_lines(path, max_line=max_line)
        tags = kind_detection.conll_tags(head) or TAGS if columns is None else tuple(columns)
        read = partial(read_conll, path, tags=tags, max_line=max_line)
        about = f"CoNLL-2000, words with tags ({', '.join(tags)})"
    elif file_kind in ("images", "dataset", "list"):
        raise LoadError(f"{path} is a file, which cannot be read as {file_kind!r}.")
    else:
        head = kind_detection.first_lines(path, max_line=max_line)
        layout = layout_of(rows_of(head), kind, columns)
        read, file_kind, about = partial(read_table, path, layout, max_line=max_line), layout.kind, layout.about
    return Corpus(path.name, file_kind, about, read, files=[path], **options)


def _images(folder: Path, options: dict[str, Any]) -> Corpus:
    if next(image_files(folder), None) is None:
        raise InputError(f"there are no images in {folder}: give a file of text, or a folder with images in it.")
    about = "a folder of images, classes by subfolder"
    return Corpus(folder.name, "images", about, lambda: read_images(folder), files=[folder], **options)


def _dataset(dataset: Any, columns: Mapping[str, int | str] | None, options: dict[str, Any]) -> Corpus:
    if isinstance(dataset, Mapping):
        raise InputError(f"this dataset has several parts ({', '.join(map(str, dataset))}): choose one of them.")
    taken = dataset_columns(dataset, columns)
    info = getattr(dataset, "info", None)
    name = getattr(info, "dataset_name", None) or getattr(dataset, "name", None) or "dataset"
    sources = ", ".join(f"{field} from {column!r}" for field, column in taken.items())
    about = f"a dataset ({sources})"
    return Corpus(str(name), "dataset", about, lambda: read_dataset(dataset, taken, str(name)), **options)
