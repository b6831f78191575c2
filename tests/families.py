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
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "models.md"
START, END = "<!-- families: start -->", "<!-- families: end -->"

State = Literal["exact", "close", "differs", "refused", "not compared", "not built", "error"]
MEANING: dict[State, str] = {
    "exact": "equal to its own attention to the last bit",
    "close": "equal within rounding (1e-4 of the largest output)",
    "differs": "loads with a warning that names the first layer that differs",
    "refused": "refused by name, with the reason",
    "not compared": "no input could be made up that it runs by itself",
    "not built": "could not be built small from its configuration",
    "error": "an exception that no user should see",
}

# What sizes are called in configurations, and how small they become; the first match counts.
SIZES: list[tuple[str, int]] = [
    (r"^(chunk_size.*|.*_theta|.*_factor|num_labels|num_channels|in_channels|in_chans|.*num_buckets)$", 0),
    (r"^(.*vocab_size.*|codebook_size|num_codes|n_codes|num_embeddings)$", 128),
    (r"^(mamba_n_heads|mamba_num_heads|n_mamba_heads|mamba_nheads|num_mamba_heads)$", 8),
    (r"^(mamba_d_head|mamba_head_dim|mamba_headdim)$", 8),
    (r"^(mamba_d_state|ssm_state_size|state_size|mamba_d_state|mamba_state_dim)$", 8),
    (r"^(mamba_d_ssm)$", 64),
    (r"^(mamba_n_groups|mamba_ngroups|n_groups)$", 1),
    (r"^(linear_num_key_heads|linear_num_value_heads)$", 2),
    (r"^(.*num_key_value_heads|.*num_kv_heads|num_key_value_groups|multi_query_group_num|.*kv_n_heads)$", 2),
    (r"^(q_lora_rank|kv_lora_rank|o_lora_rank|.*lora_rank)$", 16),
    (r"^(.*head_dim|d_kv|attention_head_size|head_size|kv_channels|attention_key_value_channels)$", 8),
    (r"^(.*num_attention_heads|.*_attention_heads|n_heads?|num_heads|.*num_heads|.*_nhead|nhead|attention_heads)$", 4),
    (r"^(.*experts_per_tok.*|moe_k|moe_topk|top_k_experts|num_selected_experts|router_top_?k|topk_group)$", 2),
    (r"^(n_shared_experts|num_shared_experts|n_group)$", 1),
    (r"^(.*num_.*experts|n_routed_experts|moe_num_experts|num_experts)$", 4),
    (r"^(num_hidden_layers|n_layers?|num_layers|.*_layers|depth|num_blocks|num_hidden_groups|.*num_hidden_layers)$", 2),
    (r"^(.*intermediate_size|.*ffn_dim|n_inner|d_ff|d_inner|mlp_dim|feed_forward_size|inner_dim|.*_ffn_size)$", 64),
    (r"^(.*max_position_embeddings|n_positions|max_.*positions|seq_length|max_seq_len.*|n_ctx|block_size)$", 128),
    (r"^(sliding_window|attention_window|local_attention|window_size_attention|sliding_window_size)$", 8),
    (r"^(image_size|img_size|input_size|base_image_size)$", 32),
    (r"^(patch_size|conv_patch_size|tubelet_size)$", 8),
    (r"^(num_frames)$", 2),
    (
        r"^(.*hidden_size.*|d_model|n_embd|dim|embed_dim|hidden_dim|.*embedding_size|emb_dim|.*embed_dim|embed_size)$",
        32,
    ),
    (r"^(projection_dim|.*projection_dim|out_hidden_size|d_embed|d_hidden|width|encoder_hidden_dim|model_dim)$", 32),
    (r"^(num_queries|num_query_tokens|num_latents|n_queries|max_source_positions)$", 8),
]
IDS = {"pad": 0, "bos": 1, "eos": 2, "decoder_start": 1, "unk": 3, "mask": 4, "cls": 1, "sep": 2}
N_LAYERS = 4
CHUNK = 30


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


# Small configurations


def small_config(model_type: str) -> Any:
    """The configuration of a type, all of its sizes made small."""
    from transformers import CONFIG_MAPPING, AutoConfig

    config_class = CONFIG_MAPPING[model_type]
    if model_type in PAIRS:
        first, second = (small_config(part) for part in PAIRS[model_type])
        joins = [name for name in dir(config_class) if re.fullmatch(r"from_.*_configs", name)]
        return getattr(config_class, joins[0])(first, second)
    config = AutoConfig.for_model(model_type)
    shrink(config)
    return config


PAIRS = {
    "encoder-decoder": ("bert", "bert"),
    "vision-encoder-decoder": ("vit", "gpt2"),
    "speech-encoder-decoder": ("wav2vec2", "bert"),
    "vision-text-dual-encoder": ("vit", "bert"),
}


def shrink(config: Any) -> None:
    """Make the sizes of a configuration small, those of its parts too."""
    from transformers import PreTrainedConfig

    for part in list(vars(config).values()):
        if isinstance(part, PreTrainedConfig):
            shrink(part)
    n_before = next((n for n in (getattr(config, name, None) for name in LAYER_COUNTS) if isinstance(n, int)), None)
    lists = {name: part for name, part in vars(config).items() if isinstance(part, list) and part}
    n_after = 2
    if n_before and any(len(part) == n_before and len(set(map(str, part))) > 1 for part in lists.values()):
        n_after = N_LAYERS
    for name, size in list(vars(config).items()):
        if name.endswith("token_id") or name.endswith("token_index") or name.endswith("_token_ids"):
            assign(config, name, small_id(name, size))
        elif isinstance(size, int) and not isinstance(size, bool):
            assign(config, name, small_size(name, size, n_after))
        elif isinstance(size, list | tuple) and size:
            assign(config, name, small_list(name, size, n_before, n_after))
        elif isinstance(size, dict):
            assign(config, name, small_dict(size))


LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "depth")


def assign(config: Any, name: str, size: Any) -> None:
    """Set a field; some check or derive theirs and are left alone."""
    try:
        setattr(config, name, size)
    except (AttributeError, ValueError, TypeError, NotImplementedError):
        return


def small_size(name: str, size: int, n_layers: int) -> int:
    """A size by its name."""
    for pattern, small in SIZES:
        if re.match(pattern, name):
            small = n_layers if small == 2 and "layer" in pattern and "experts" not in pattern else small
            return min(size, small) if small and size > 0 else size
    return size


def small_id(name: str, size: Any) -> Any:
    """Ids inside a small vocabulary; those of images and sounds each their own."""
    if isinstance(size, list):
        return [small_id(name, size[0])] if size else size
    if not isinstance(size, int) or size < 0:
        return size
    kind = re.sub(r"_(token_id|token_index|token_ids)$", "", name)
    return IDS.get(kind, 100 + sum(map(ord, kind)) % 27) if size >= 100 or kind in IDS else size


def small_list(name: str, sizes: Sequence[Any], n_before: int | None, n_after: int) -> Any:
    """Lists with a member for each layer keep one of each kind; sections of rotary dimensions add up to half a head."""
    if "section" in name:
        return [2, 1, 1][: len(sizes)]
    if n_before and len(sizes) == n_before:
        kinds = list(dict.fromkeys(map(str, sizes)))
        kinds = [next(size for size in sizes if str(size) == kind) for kind in kinds]
        return [kinds[min(place, len(kinds) - 1)] for place in range(n_after)] if len(kinds) <= n_after else list(sizes)
    if re.search(r"layer_(ids|idxs|indices|idx)|_layers$|_indices$", name) and all(
        isinstance(size, int) for size in sizes
    ):
        return [size for size in sizes if size < n_after] or [n_after - 1]
    if re.match(r"image_size|img_size", name):
        return [32 for _ in sizes]
    if re.match(r"patch_size", name):
        return [8 if size > 4 else size for size in sizes]
    return sizes


def small_dict(fields: dict) -> dict:
    """Rotary settings: sections that fit a small head."""
    fields = dict(fields)
    for name, part in fields.items():
        if isinstance(name, str) and "section" in name and isinstance(part, list):
            fields[name] = [2, 1, 1][: len(part)]
        elif isinstance(part, dict):
            fields[name] = small_dict(part)
    return fields


# Models and inputs


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
    )
    names: list[str] = []
    for mapping in [getattr(auto, f"MODEL_FOR_{kind}_MAPPING_NAMES") for kind in kinds] + [auto.MODEL_MAPPING_NAMES]:
        found_names = mapping.get(model_type, ())
        names += [found_names] if isinstance(found_names, str) else list(found_names)
    yield from dict.fromkeys(names)


def build(model_type: str, class_name: str) -> Any:
    """A tiny module with seeded weights that make its patterns uneven."""
    import torch
    import transformers

    config = small_config(model_type)
    torch.manual_seed(0)
    module = getattr(transformers, class_name)(config)
    enliven(module)
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
            if parameter.ndim >= 2:
                parameter.copy_(noise * min(0.25, 1.5 / math.sqrt(max(parameter[0].numel(), 1))))
            elif name.endswith("bias") or not bool(parameter.any()):
                parameter.copy_(noise * 0.1)


def made_up_inputs(module: Any) -> Iterator[dict[str, Any]]:
    """Inputs that some model of this kind takes, the likeliest first; the first that it runs by itself is used."""
    import inspect

    import torch

    generator = torch.Generator().manual_seed(0)
    names = set(inspect.signature(type(module).forward).parameters)
    config = module.config
    ids = (torch.arange(7) * 5 % 60 + 20)[None]

    def noise(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    texts: dict[str, Any] = {}
    if "input_ids" in names:
        texts["input_ids"] = ids
    if "attention_mask" in names and "input_ids" in names:
        texts["attention_mask"] = torch.ones_like(ids)
    if "decoder_input_ids" in names:
        texts["decoder_input_ids"] = ids[:, :5]
    target = {name: tensor for name, tensor in texts.items() if name.startswith("decoder_")}
    if "input_ids" in texts:
        yield texts
        if "bbox" in names:
            yield texts | {"bbox": torch.ones(1, 7, 4, dtype=torch.long)}
    vision = [getattr(config, name, None) for name in ("vision_config", "encoder", "backbone_config")]
    sizes = [getattr(section, "image_size", None) for section in (config, *vision)]
    sides = [size if isinstance(size, int) else size[0] for size in sizes if isinstance(size, int | list | tuple)]
    for side in dict.fromkeys([*sides, 32, 64, 224]):
        for channels in dict.fromkeys([getattr(config, "num_channels", 3), 3]):
            if "pixel_values" in names and isinstance(channels, int):
                yield target | {"pixel_values": noise(1, channels, side, side)}
                if "input_ids" in names:
                    yield texts | {"pixel_values": noise(1, channels, side, side)}
                yield target | {"pixel_values": noise(1, 2, channels, side, side)}
                yield target | {
                    "pixel_values": noise(1, channels, side, side),
                    "pixel_mask": torch.ones(1, side, side).long(),
                }
        if "pixel_values_videos" in names:
            yield {"pixel_values_videos": noise(1, 2, 3, side, side)}
    bins = [
        getattr(section, name, None)
        for section in (config, getattr(config, "audio_config", None), getattr(config, "encoder_config", None))
        for name in ("num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "n_mels", "input_channels")
    ]
    for n_bins in dict.fromkeys([size for size in bins if isinstance(size, int)] + [80, 128]):
        frames = 2 * (getattr(config, "max_source_positions", None) or 32)
        for name in ("input_features", "audio_values", "input_values"):
            if name in names:
                yield target | {name: noise(1, n_bins, frames)}
                yield target | {name: noise(1, frames, n_bins)}
                yield target | {name: noise(1, 1, 64, n_bins)}
                if "attention_mask" in names:
                    yield target | {name: noise(1, frames, n_bins), "attention_mask": torch.ones(1, frames).long()}
                yield texts | {name: noise(1, n_bins, frames)}
    for name in ("input_values", "audio_values", "input_features"):
        if name in names:
            for length in (3200, 16000):
                yield target | {name: noise(1, length)}
                yield target | {name: noise(1, 1, length)}
    if "past_values" in names:
        length = getattr(config, "context_length", 32)
        n_series = getattr(config, "num_input_channels", 1) or 1
        yield {"past_values": noise(1, length, n_series)}
        yield {"past_values": noise(1, length)}
    if "inputs" in names:
        yield {"inputs": ids}
        yield {"inputs": noise(1, 3, 32, 32)}
    if "inputs_embeds" in names:
        yield {"inputs_embeds": noise(1, 7, 32)}
    if "hidden_states" in names:
        yield {"hidden_states": noise(1, 7, 32)}


# Comparing


def compare(model_type: str) -> Result:
    """Build a type, verify it, and say how it went."""
    import torch

    torch.set_num_threads(1)
    last = Result(model_type, "not built", detail="no class of it can be loaded with AutoModel")
    order: list[State] = ["exact", "close", "differs", "error", "refused", "not compared", "not built"]
    for class_name in class_names(model_type):
        result = compare_class(model_type, class_name)
        if order.index(result.state) <= order.index("error"):
            return result
        if order.index(result.state) < order.index(last.state) or not last.class_name:
            last = result
    return last


def compare_class(model_type: str, class_name: str) -> Result:
    """One class of a type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = build(model_type, class_name)
    except Exception as error:  # Transformers raises anything where sizes do not fit
        return Result(model_type, "not built", class_name, f"{type(error).__name__}: {short(error)}")
    return compare_module(model_type, class_name, module)


def compare_module(model_type: str, class_name: str, module: Any) -> Result:
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
                verification = verify_on_made_up(model) or verification
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
        model_type, state, class_name, detail, verification.difference, verification.compared, verification.notes
    )


def verify_on_made_up(model: Any) -> Any:
    """The verification on the first made-up input that the model runs by itself; None if it runs none."""
    import torch

    from headscope.models.capture.verification import verify_whole

    for inputs in made_up_inputs(model.module):
        try:
            with torch.no_grad():
                model.module(**inputs)
        except Exception:  # the next may fit
            continue
        return verify_whole(model, inputs)
    return None


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
    import transformers

    counts = Counter(result.state for result in results)
    n_compared = counts["exact"] + counts["close"] + counts["differs"]
    lines = [
        f"Transformers {transformers.__version__}: {len(results)} model types, {n_compared} compared.",
        "",
        "| result | types | what it means |",
        "|---|---|---|",
        *(f"| {state} | {counts[state]} | {meaning} |" for state, meaning in MEANING.items() if counts[state]),
        "",
    ]
    for state in MEANING:
        rows = [result for result in results if result.state == state]
        if not rows:
            continue
        lines += [f"**{state.capitalize()}** ({len(rows)})", ""]
        if state == "exact":
            lines += [", ".join(result.model_type for result in rows), ""]
        else:
            lines += [f"- {result.model_type}: {cell(result)}" for result in rows] + [""]
    notes = [(result.model_type, note) for result in results for note in result.notes if "SDPA" in note]
    if notes:
        lines += ["**The model's own SDPA and eager attention disagree**: what is shown follows eager", ""]
        lines += [f"- {model_type}: {note}" for model_type, note in notes] + [""]
    return "\n".join(lines)


def cell(result: Result) -> str:
    """What a row says beside its name."""
    text = f"{result.difference:.2g}" if result.state == "close" else result.detail
    return text.replace("|", "\\|").replace("<", "&lt;") or "–"


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
        for model_type in types:
            write(LINE + json.dumps(asdict(compare(model_type))))
        return 0
    results: list[Result] = []

    def report(result: Result) -> None:
        results.append(result)
        line = f"{len(results)}/{len(types)} {result.model_type}: {result.state} {result.class_name} {result.detail}"
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
