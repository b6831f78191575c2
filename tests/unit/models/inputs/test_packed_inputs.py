"""Inputs of unusual shape: SigLIP 2's patches in rows (NaFlex), TAPAS' seven kinds of token types."""

import copy

import made_media
import numpy as np
import pytest
import tiny_models
import tiny_tokenizers
import torch
import transformers
from torch import Tensor

import headscope as hs
from headscope.errors import InputError
from headscope.models import Model

PATCH, MOST = 4, 16


@pytest.fixture(scope="module")
def siglip() -> Model:
    config = transformers.Siglip2VisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_patches=MOST,
        patch_size=PATCH,
    )  # fmt: skip
    module = tiny_models.tiny(transformers.Siglip2VisionModel, config)
    return Model(module, transformers.Siglip2ImageProcessorPil(patch_size=PATCH, max_num_patches=MOST))


def ready(model: Model, *sizes: tuple[int, int]) -> dict[str, Tensor]:
    return dict(model.processor(images=[made_media.picture(*size) for size in sizes], return_tensors="pt"))


def eager(model: Model, inputs: dict[str, Tensor]) -> Tensor:
    """The first layer's pattern [example, head, query, key] of the model's own eager code."""
    plain = type(model.module)(copy.deepcopy(model.config)).eval()  # set_attn_implementation changes the config
    plain.load_state_dict(model.module.state_dict())
    plain.set_attn_implementation("eager")  # type: ignore[operator]
    with torch.no_grad():
        return plain(**inputs, output_attentions=True).attentions[0]


@pytest.mark.parametrize("way", ["picture", "ready"])
def test_patches_of_any_shape_are_the_positions_of_their_image(siglip, way):
    inputs = ready(siglip, (40, 20))
    trace = siglip.run(image=made_media.picture(40, 20)) if way == "picture" else siglip.run(inputs=inputs)
    tokens = trace.tokens["main"]
    assert tokens.grid == (3, 5) and tokens.texts[:6] == ["0,0", "0,1", "0,2", "0,3", "0,4", "1,0"]
    expected = eager(siglip, inputs)[0, :, :15, :15]  # the sixteenth is padding
    for head in range(4):
        assert np.allclose(trace.pattern(f"L0H{head}"), expected[head], atol=1e-5)


def test_the_picture_is_put_together_again(siglip):
    seen = siglip.run(image=made_media.picture(40, 20)).inputs.seen["main"]
    assert seen.pixels.shape == (3 * PATCH, 5 * PATCH, 3) and seen.patch == (PATCH, PATCH)
    smooth = made_media.picture(40, 20).resize((5 * PATCH, 3 * PATCH))
    assert np.abs(np.asarray(smooth).astype(int) - seen.pixels.numpy().astype(int)).mean() < 6


def test_images_of_two_shapes_share_a_batch_without_changing_a_number(siglip):
    wide, tall = siglip.run([made_media.picture(40, 20), made_media.picture(20, 40)])
    assert (wide.tokens["main"].grid, tall.tokens["main"].grid) == ((3, 5), (5, 3))
    both = siglip.run(inputs=ready(siglip, (40, 20), (20, 40)))
    alone = siglip.run(image=made_media.picture(20, 40))
    for trace in (tall, both[1]):
        assert np.allclose(trace.pattern("L1H2"), alone.pattern("L1H2"), atol=1e-6)


def test_patches_without_their_numbers_are_refused(siglip):
    inputs = ready(siglip, (40, 20))
    with pytest.raises(InputError, match="patches of images need 'spatial_shapes'"):
        siglip.run(inputs={"pixel_values": inputs["pixel_values"]})
    with pytest.raises(InputError, match=r"has \[15\] real patches of \[1, 16\], where 'spatial_shapes' says \[16\]"):
        siglip.run(inputs=inputs | {"spatial_shapes": torch.tensor([[4, 4]])})


@pytest.fixture(scope="module")
def tapas() -> Model:
    config = transformers.TapasConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64, type_vocab_sizes=[3, 16, 16, 2, 2, 4, 4],
    )  # fmt: skip
    return Model(tiny_models.tiny(transformers.TapasModel, config), tiny_tokenizers.piece_tokenizer())


def table_inputs(model: Model) -> dict[str, Tensor]:
    """A question of four tokens and a table of one row: segment, column, row and four more of each token."""
    ids = torch.tensor([[2, 20, 21, 3, 30, 31, 32]])
    types = torch.zeros(1, 7, 7, dtype=torch.long)
    types[:, 4:, 0], types[:, 4:, 1], types[:, 4:, 2] = 1, torch.arange(1, 4), 1
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": torch.ones_like(ids)}


def test_token_types_of_a_table_are_taken(tapas):
    inputs = table_inputs(tapas)
    trace = tapas.run(inputs=inputs)
    assert [token.segment for token in trace.tokens["main"]] == [*"AAAA", *"BBB"]
    assert np.allclose(trace.pattern("L0H1"), eager(tapas, inputs)[0, 1], atol=1e-5)
    flat = tapas.run(inputs=inputs | {"token_type_ids": torch.zeros_like(inputs["token_type_ids"])})
    assert not np.allclose(trace.pattern("L0H1"), flat.pattern("L0H1"), atol=1e-3)
    alone = tapas.run(inputs={name: value[0] for name, value in inputs.items()})
    assert np.array_equal(alone.pattern("L1H3"), trace.pattern("L1H3"))


def test_token_types_of_another_length_are_refused(tapas):
    inputs = table_inputs(tapas)
    with pytest.raises(InputError, match=r"'token_type_ids' has shape \[1, 6\] but 'input_ids' has \[1, 7\]"):
        tapas.run(inputs=inputs | {"token_type_ids": inputs["token_type_ids"][:, 1:]})
    bert = hs.load("builtin:bert")
    with pytest.raises(InputError, match=r"must be \[tokens\] or \[batch, tokens\]"):
        bert.run(inputs={"input_ids": inputs["input_ids"], "token_type_ids": inputs["token_type_ids"]})
