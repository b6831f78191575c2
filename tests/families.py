"""Every model type that Transformers knows, built tiny with random weights and verified against its own attention.

`python tests/families.py` does it for all (`make families`) and writes the table of docs/models.md;
`python tests/families.py bert qwen3` for some.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

from made_up_inputs import made_up_inputs
from small_configs import SHALLOW, SIZES, Sizes, small_config

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "models.md"
START, END = "<!-- families: start -->", "<!-- families: end -->"

State = Literal["exact", "close", "differs", "refused", "not compared", "not built", "error"]
MEANING: dict[State, str] = {
    "exact": "outputs and patterns equal those of its own attention to the last bit",
    "close": "equal within rounding (1e-4 of the largest output)",
    "differs": "loads with a warning that names the first layer that differs",
    "refused": "refused by name, with the reason",
    "not compared": "no input could be made up that it runs by itself",
    "not built": "could not be built small from its configuration",
    "error": "an exception that no user should see",
}

CHUNK = 30
REASON_LENGTH = 180
VERSION_LINE = "Transformers"
MOST_PARAMETERS = 4 * 10**7


@dataclass(frozen=True)
class Result:
    """How one model type fared."""

    model_type: str
    state: State
    class_name: str = ""
    detail: str = ""
    difference: float = 0.0
    compared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    disagreement: str = ""
    seconds: float = 0.0


# Models


def class_names(model_type: str) -> Iterator[str]:
    """The classes of a type, the ones that people load first: those with a head before the bare model."""
    import transformers.models.auto.modeling_auto as auto

    kinds = (
        "SEQ_TO_SEQ_CAUSAL_LM",
        "SPEECH_SEQ_2_SEQ",
        "IMAGE_TEXT_TO_TEXT",
        "CAUSAL_LM",
        "MASKED_LM",
        "IMAGE_CLASSIFICATION",
        "CTC",
        "PRETRAINING",
        "ZERO_SHOT_IMAGE_CLASSIFICATION",
        "TEXT_TO_WAVEFORM",
    )
    names: list[str] = []
    for mapping in [getattr(auto, f"MODEL_FOR_{kind}_MAPPING_NAMES") for kind in kinds] + [auto.MODEL_MAPPING_NAMES]:
        found_names = mapping.get(model_type, ())
        names += [found_names] if isinstance(found_names, str) else list(found_names)
    yield from dict.fromkeys(names)


def build(model_type: str, class_name: str, sizes: Sizes) -> Any:
    """A tiny module with seeded weights that make its patterns uneven."""
    import torch
    import transformers

    model_class = getattr(transformers, class_name)
    if sizes is not SIZES:
        with torch.device("meta"):
            n_parameters = model_class(small_config(model_type, sizes)).num_parameters()
        if n_parameters > MOST_PARAMETERS:
            raise ValueError(f"{n_parameters / 1e6:.0f} million parameters with few layers alone")
    torch.manual_seed(0)
    module = model_class(small_config(model_type, sizes))
    enliven(module)
    # Some have no eager attention, and say so with errors of many kinds.
    with suppress(Exception):
        module.set_attn_implementation("eager")
    return module.eval()


def enliven(module: Any) -> None:
    """Weights large enough for patterns that are far from uniform, and biases and tables that are not zero."""
    import torch

    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.is_floating_point():
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2 and parameter.numel():
                parameter.copy_(noise * min(0.25, 1.5 / math.sqrt(max(parameter[0].numel(), 1))))
            elif name.endswith("bias") or not bool(parameter.any()):
                parameter.copy_(noise * 0.1)


# Comparing


def compare(model_type: str) -> Result:
    """Build a type, verify it, and say how it went."""
    last = Result(model_type, "not built", detail="no class of it can be loaded with AutoModel")
    order: list[State] = ["exact", "close", "differs", "error", "refused", "not compared", "not built"]
    for class_name, sizes in product(class_names(model_type), (SIZES, SHALLOW)):
        if sizes is SHALLOW and last.state == "refused":
            continue  # no matter of sizes
        result = compare_class(model_type, class_name, sizes)
        if order.index(result.state) <= order.index("error"):
            return result
        if order.index(result.state) < order.index(last.state) or not last.class_name:
            last = result
    return last


def compare_class(model_type: str, class_name: str, sizes: Sizes) -> Result:
    """One class of a type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = build(model_type, class_name, sizes)
    except Exception as error:  # Transformers raises anything where sizes do not fit
        return Result(model_type, "not built", class_name, f"{type(error).__name__}: {short(error)}")
    return compare_module(model_type, class_name, module, lambda: build(model_type, class_name, sizes))


def compare_module(model_type: str, class_name: str, module: Any, make_twin: Callable[[], Any]) -> Result:
    """Verify a module on what it reads, or on the first made-up input that it runs by itself."""
    from headscope.errors import HeadscopeError
    from headscope.models import Model
    from headscope.models.capture.verification import verify_whole

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Model(module, name=model_type)
            verification = verify_whole(model)
            if verification.is_equal is None:
                verification = verify_on_made_up(model, make_twin()) or verification
    except HeadscopeError as error:
        return Result(model_type, "refused", class_name, short(error))
    except Exception as error:
        return Result(model_type, "error", class_name, f"{type(error).__name__}: {short(error)}")
    return result_of(model_type, class_name, verification)


def result_of(model_type: str, class_name: str, verification: Any) -> Result:
    """A verification as a row of the table."""
    state: State = "exact" if verification.difference == 0 else "close"
    detail = ""
    if verification.is_equal is None:
        state, detail = "not compared", "; ".join(verification.notes)
    elif not verification.is_equal:
        is_raw = re.search(r"^observing .* raised ", verification.first_difference)
        is_refusal = re.search(r"^observing .* was refused: ", verification.first_difference)
        state = "error" if is_raw else "refused" if is_refusal else "differs"
        detail = verification.first_difference
    return Result(
        model_type,
        state,
        class_name,
        detail,
        verification.difference,
        verification.compared,
        verification.notes,
        verification.disagreement,
    )


def verify_on_made_up(model: Any, twin: Any) -> Any:
    """The verification on the first made-up input that the model's twin runs by itself; None if it runs none."""
    import torch

    from headscope.models.capture.verification import verify_whole

    for inputs in made_up_inputs(twin):
        try:
            with torch.no_grad():
                outputs = twin(**inputs)
        except Exception:  # the next may fit
            continue
        if not is_number(outputs):
            continue
        verification = verify_whole(model, inputs)
        if verification.is_equal is None and "other numbers each time" not in verification.line:
            # It ran by itself just now: what is raised comes of looking.
            error = re.sub(r"^it cannot run .* by itself \((.*)\)$", r"\1", "; ".join(verification.notes))
            return replace(verification, is_equal=False, first_difference=f"observing the inputs given raised {error}")
        return verification
    return None


def is_number(outputs: Any) -> bool:
    """Whether the first output has no NaN: a model that gives none on an input does not take it."""
    first = next(iter(outputs.values())) if hasattr(outputs, "values") else outputs
    return not (hasattr(first, "isnan") and bool(first.isnan().any()))


def short(error: object) -> str:
    """An exception on one line."""
    return " ".join(str(error).split())[:200]


# The table


def all_types() -> list[str]:
    """Every model type that AutoModel knows."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return sorted(MODEL_MAPPING_NAMES)


def table(results: Sequence[Result]) -> str:
    """The generated part of docs/models.md."""
    counts = Counter(result.state for result in results)
    n_compared = counts["exact"] + counts["close"] + counts["differs"]
    lines = [
        f"{VERSION_LINE} {transformers_version()}: {len(results)} model types, {n_compared} compared.",
        "",
        "| result | types | what it means |",
        "|---|---|---|",
        *(f"| {state} | {counts[state]} | {meaning} |" for state, meaning in MEANING.items() if counts[state]),
        "",
    ]
    for state in MEANING:
        rows = [result for result in results if result.state == state]
        if rows:
            lines += [f"**{state.capitalize()}** ({len(rows)})", "", *section(rows), ""]
    notes = [(result.model_type, result.disagreement) for result in results if result.disagreement]
    if notes:
        lines += ["**The model's own SDPA and eager attention disagree**", ""]
        lines += [f"- {model_type}: {note}" for model_type, note in notes] + [""]
    return "\n".join(lines)


def section(rows: Sequence[Result]) -> list[str]:
    """Names in one paragraph, with small differences behind them; where there is a reason, a line for each reason."""
    if rows[0].state in ("exact", "close"):
        sizes = {result.model_type: f" ({result.difference:.1g})" if result.difference else "" for result in rows}
        return [", ".join(f"{model_type}{size}" for model_type, size in sizes.items())]
    by_reason: dict[str, list[str]] = {}
    for result in rows:
        by_reason.setdefault(reason(result), []).append(result.model_type)
    return [f"- {', '.join(types)}: {text}" for text, types in by_reason.items()]


def reason(result: Result) -> str:
    """Why a type has not been compared, without the name of its class, so that types can share a line."""
    text = re.sub(rf"\b({result.class_name})\b", "the model", result.detail) if result.class_name else result.detail
    text = re.sub(r"^observing .*? was refused: ", "", text).split("; ")[0]
    text = re.sub(r" but it was not found in your environment.*|: what it would show could be wrong.*", "", text)
    text = re.sub(r"(that Headscope can(not)? (see|read))[:.] .*", r"\1", text)
    text = re.sub(r"^\w+Attention passes", "the model passes", text)
    return text[:REASON_LENGTH].replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*") or "–"


def transformers_version() -> str:
    """The version whose types these are."""
    import transformers

    return transformers.__version__


def types_in_docs() -> tuple[str, set[str]]:
    """The version of Transformers that the table of docs/models.md is about, and every word that it names."""
    page = PAGE.read_text(encoding="utf-8")
    text = page[page.index(START) : page.index(END)]
    version = re.search(rf"{VERSION_LINE} (\S+):", text)
    return (version[1] if version else ""), set(re.findall(r"[\w.-]+", text))


def compare_in_process(types: Sequence[str], report: Callable[[Result], None]) -> None:
    """Compare types in a process of its own, which may be killed by what it runs: the rest is run in another."""
    waiting = list(types)
    while waiting:
        command = [sys.executable, __file__, "--lines", *waiting]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(LINE):
                    report(Result(**json.loads(line.removeprefix(LINE))))
                    waiting.pop(0)
        if waiting:
            detail = f"the process ended with code {process.returncode}"
            report(Result(waiting.pop(0), "error", detail=detail))


LINE = "result: "


def write(line: str) -> None:
    """A line that is seen at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run some types, or all of them with a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*", help="model types; all without any")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the results here too")
    parser.add_argument("--lines", action="store_true", help="one line of JSON a type, in this process")
    arguments = parser.parse_args()
    types = arguments.types or all_types()
    if arguments.lines:
        import torch

        torch.set_num_threads(1)
        for model_type in types:
            start = time.perf_counter()
            result = compare(model_type)
            write(LINE + json.dumps(asdict(result) | {"seconds": round(time.perf_counter() - start, 1)}))
        return 0
    results: list[Result] = []

    def report(result: Result) -> None:
        results.append(result)
        line = (
            f"{len(results)}/{len(types)} {result.model_type}: {result.state} {result.seconds} s {result.class_name} "
        )
        line += result.detail
        write(line)

    chunks = [types[first : first + CHUNK] for first in range(0, len(types), CHUNK)]
    with ThreadPoolExecutor(arguments.workers) as pool:
        list(pool.map(lambda chunk: compare_in_process(chunk, report), chunks))
    results.sort(key=lambda result: result.model_type)
    write(json.dumps(Counter(result.state for result in results)))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if not arguments.types:
        page = PAGE.read_text(encoding="utf-8")
        start, end = page.index(START) + len(START), page.index(END)
        PAGE.write_text(f"{page[:start]}\n{table(results)}{page[end:]}", encoding="utf-8")
    return int(any(result.state in ("differs", "error") for result in results))


if __name__ == "__main__":
    sys.exit(main())
