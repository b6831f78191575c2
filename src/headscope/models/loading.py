"""Loading: a built-in model, a folder or a hub id, with what people should know about it."""

import re
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoFeatureExtractor, AutoImageProcessor, AutoModel, AutoProcessor, AutoTokenizer

from headscope.errors import HeadscopeError, LoadError, MissingExtraError
from headscope.models.model import Model
from headscope.models.slim_layers import slim_class
from headscope.models.slim_plan import read_plan
from headscope.models.word_tagger import register_word_tagger

BUILTIN = Path(__file__).parent.parent / "builtin"
_NEEDS_PACKAGE = re.compile(r"requires the (?:🤗 )?([\w -]+?) library")
# Names for pip where these differ from the library's own.
_PIP_NAMES = {
    "PIL": "pillow", "cv2": "opencv-python", "OpenCV": "opencv-python", "PyAv": "av", "yaml": "pyyaml",
    "jinja": "jinja2", "google": "protobuf", "mistral_common": "mistral-common", "sklearn": "scikit-learn",
}  # fmt: skip
# Transformers loads through global state (which device new weights are on, which are tied): two loads at once leave
# weights that were never read.
_LOADING = threading.Lock()
register_word_tagger()


def load(
    name_or_folder: str | Path,
    *,
    device: str | torch.device | None = "auto",
    dtype: str | torch.dtype | None = None,
    device_map: str | dict | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
    verify: bool | None = None,
) -> Model:
    """Load a model with its tokenizer or processor: "builtin:gpt", a folder, or a hub id.

    Weights are read from safetensors; a pickle checkpoint can run code while it loads and is read only with
    `allow_pickle=True`. `dtype` is that of the checkpoint by default; half precision is widened to fp32 on a CPU.
    `device` is "auto" by default: a GPU if there is one, else the CPU; `device_map` spreads a model over several.
    `verify` says whether to compare the model, observed, with its own attention: by default unless it has more than a
    billion parameters.

    >>> import headscope as hs
    >>> hs.load("builtin:gpt").coverage
    '6/6 attention modules captured (layers: 6 routed); verified, max difference 0.0'
    """
    device = chosen_device(device)
    check_device(device)
    with _LOADING:
        return _load(name_or_folder, device, dtype, device_map, revision, trust_remote_code, allow_pickle, verify)


def _load(
    name_or_folder: str | Path,
    device: str | torch.device,
    dtype: str | torch.dtype | None,
    device_map: str | dict | None,
    revision: str | None,
    trust_remote_code: bool,
    allow_pickle: bool,
    verify: bool | None,
) -> Model:
    place, is_folder = place_of(name_or_folder)
    hub = {"trust_remote_code": trust_remote_code} | ({} if is_folder else {"revision": revision})
    config = _read(lambda: AutoConfig.from_pretrained(place, **hub), place, is_folder, "configuration")
    if device_map is not None:
        try:
            import accelerate as _  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(
                "device_map needs the package accelerate: pip install 'headscope[offload]'."
            ) from error
    options: dict[str, Any] = {
        "dtype": _dtype(dtype, config, device, device_map),
        "use_safetensors": not allow_pickle or None,
    }
    if device_map is not None:
        options["device_map"] = device_map
    kind = _kind(config, trust_remote_code)
    plan = read_plan(Path(place)) if is_folder else None
    if plan is not None:
        kind = slim_class(kind, plan)
    module, info = _read(
        lambda: kind.from_pretrained(place, **hub, **options, output_loading_info=True), place, is_folder, "weights"
    )
    module.eval()
    if device_map is None:
        module.to(device)
    processor, missing = read_processor(place, hub)
    model = Model(module, processor, name=str(name_or_folder), verify=verify)
    if missing:
        model.warn(missing)
    _say_what_is_new(model, info)
    return model


def chosen_device(device: str | torch.device | None) -> str | torch.device:
    """The device that "auto", or None, stands for here: a CUDA GPU, else Apple's, else the CPU; any other is kept."""
    if device is not None and device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def check_device(device: str | torch.device) -> None:
    """Refuse a device that models cannot run on here, before anything is read."""
    try:
        is_there = torch.empty(0, device=device).device.type != "meta"  # which computes nothing
        reason = None
    except (
        RuntimeError,
        AssertionError,
        TypeError,
    ) as error:  # torch raises the second where it was built without CUDA
        is_there, reason = False, error
    if not is_there:
        raise LoadError(
            f"there is no device {str(device)!r} on this machine: choose one of auto, {', '.join(devices())}."
        ) from reason


def devices() -> list[str]:
    """The devices that models can run on here."""
    names = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return names + (["mps"] if torch.backends.mps.is_available() else [])


def read_processor(place: str, hub: dict[str, Any]) -> tuple[Any, str]:
    """What reads inputs: a processor if the model has one, else a tokenizer, image processor or feature extractor.

    And what to tell the user, where a better one could not be made because a package is missing.
    """
    package, missing = None, ""
    kinds = {
        "processor": AutoProcessor,
        "tokenizer": AutoTokenizer,
        "image processor": AutoImageProcessor,
        "feature extractor": AutoFeatureExtractor,
    }
    for name, kind in kinds.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                processor = kind.from_pretrained(place, **hub)
        except (OSError, ValueError, KeyError, ImportError, TypeError, AttributeError) as error:
            missing_name = missing_package(error)
            if missing_name is not None and package is None:
                package = missing_name
                missing = f"the {name} of {place} needs the package {package}, which is not installed"
            continue  # not this kind: the next one may be there
        if missing:
            missing += (
                f": {type(processor).__name__} alone was loaded, so some inputs cannot be read. pip install {package}, "
                "then load the model again."
            )
        return processor, missing
    if missing:
        missing += f", so no text, image or sound can be read. pip install {package}, then load the model again."
    return None, missing


def missing_package(error: BaseException) -> str | None:
    """The name, as for pip, of the package that an error of Transformers asks for; None where it asks for none."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ImportError):
            match = _NEEDS_PACKAGE.search(str(link))
            package = link.name.partition(".")[0] if isinstance(link, ModuleNotFoundError) and link.name else None
            package = package or (match[1] if match else None)
            if package is not None:
                return _PIP_NAMES.get(package, package.lower())
        link = link.__cause__ or link.__context__
    return None


def place_of(name_or_folder: str | Path) -> tuple[str, bool]:
    """Where to load from, and whether that is a folder here."""
    text = str(name_or_folder)
    if not isinstance(name_or_folder, str | Path) or not text.strip():
        raise LoadError(f"a model is named by a text or a path, got {name_or_folder!r}.")
    if text.startswith("builtin:"):
        folder = BUILTIN / text.removeprefix("builtin:")
        if not (folder / "config.json").is_file():
            there = sorted(f"builtin:{config_file.parent.name}" for config_file in BUILTIN.glob("*/config.json"))
            raise LoadError(
                f"there is no {text}: the built-in models are {', '.join(there) or 'none in this installation'}."
            )
        return str(folder), True
    folder = Path(text).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            holds = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
            raise LoadError(f"{folder} is not a model: it has no config.json (it holds {holds}).")
        return str(folder), True
    if folder.is_file():
        raise LoadError(f"{folder} is a file: give the folder that holds config.json and the weights.")
    looks_like_path = isinstance(name_or_folder, Path) or text.startswith((".", "/", "~")) or text.count("/") > 1
    if looks_like_path or not text.strip():
        raise LoadError(f"there is no folder {text!r}.")
    return text, False


def _read(read, place: str, is_folder: bool, what: str):
    """Call a loader of Transformers, and say what its errors mean."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except HeadscopeError:
        raise
    except Exception as error:  # loaders raise anything, from OSError to their own types
        message = " ".join(str(error).split())
        if "trust_remote_code" in message:
            raise LoadError(
                f"{place} brings its own code: load it with trust_remote_code=True if you trust it."
            ) from error
        if "safetensors" in message and what == "weights":
            raise LoadError(
                f"{place} has no safetensors weights. A pickle checkpoint can run code while it loads: "
                f"pass allow_pickle=True if you trust it. ({message[:200]})"
            ) from error
        if not is_folder and isinstance(error, OSError):
            raise LoadError(
                f"could not get the {what} of {place!r} from the hub: {message[:300]} If the hub cannot be reached, "
                "give a local folder, or a model that was downloaded before with HF_HUB_OFFLINE=1 set; "
                "`headscope models` lists models that need no network."
            ) from error
        raise LoadError(f"could not read the {what} of {place}: {type(error).__name__}: {message[:400]}") from error


def _kind(config: Any, trust_remote_code: bool) -> Any:
    """The class that the checkpoint was saved from: with its head, where it has one."""
    for name in getattr(config, "architectures", None) or []:
        kind = getattr(transformers, name, None)
        if isinstance(kind, type) and issubclass(kind, nn.Module):
            return kind
    if trust_remote_code and getattr(config, "auto_map", None):
        for name in ("AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM", "AutoModel"):
            if name in config.auto_map:
                return getattr(transformers, name)
    return AutoModel


def _dtype(dtype: str | torch.dtype | None, config: Any, device: Any, device_map: Any) -> Any:
    if dtype is not None:
        if isinstance(dtype, str) and not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise LoadError(f"there is no dtype {dtype!r}: choose float32, float16, bfloat16 or float64.")
        return getattr(torch, dtype) if isinstance(dtype, str) else dtype
    saved = getattr(config, "dtype", None)
    on_cpu = device_map is None and torch.device(device).type == "cpu"
    return torch.float32 if on_cpu and saved in (torch.float16, torch.bfloat16, "float16", "bfloat16") else "auto"


def _say_what_is_new(model: Model, info: dict[str, Any]) -> None:
    """Warn of weights that the checkpoint did not have."""
    missing = sorted(info.get("missing_keys") or [])
    if missing:
        first_missing = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
        model.warn(
            f"{len(missing)} weights are freshly initialised, not trained: {first_missing}. "
            "What depends on them means nothing yet."
        )
    mismatched = info.get("mismatched_keys") or []
    if mismatched:
        model.warn(f"{len(mismatched)} weights of the checkpoint had another shape and were not used.")


def builtin_models() -> list[str]:
    """The names of the models that are part of the package."""
    return sorted(f"builtin:{config_file.parent.name}" for config_file in BUILTIN.glob("*/config.json"))
