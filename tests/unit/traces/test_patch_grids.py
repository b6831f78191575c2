"""Which patch each position of a layer is: known on paper, and from what a model does with single pixels."""

import pytest
import tiny_models
import torch

import headscope as hs
from headscope.models.capture.swin import patches_of_windows
from headscope.traces.patch_grids import coarser


def test_later_stages_have_half_the_rows_and_columns():
    assert coarser((8, 8), 16) == (4, 4)
    assert coarser((7, 9), 20) == (4, 5)
    assert coarser((8, 8), 15) is None


@pytest.mark.parametrize(
    ("shift", "first", "last"), [(0, [0, 1, 4, 5], [10, 11, 14, 15]), (1, [5, 6, 9, 10], [15, 12, 3, 0])]
)
def test_windows_of_two_by_two_in_a_grid_of_four_by_four(shift, first, last):
    block = torch.nn.Module()
    block.attention = torch.nn.Identity()
    block.input_resolution, block.shift_size, block.window_size = (4, 4), shift, 2
    module = torch.nn.Module()
    module.block = block
    windows = patches_of_windows(module, "block.attention", 4, 4)
    assert windows["grid"] == (4, 4)
    assert windows["places"][:4].tolist() == first and windows["places"][-4:].tolist() == last
    assert patches_of_windows(module, "block.attention", 5, 4) == {}  # another grid than it says


def test_windows_are_filled_up_at_the_edge():
    block = torch.nn.Module()
    block.attention = torch.nn.Identity()
    block.input_resolution, block.shift_size, block.window_size = (3, 3), 0, 2
    module = torch.nn.Module()
    module.block = block
    places = patches_of_windows(module, "block.attention", 4, 4)["places"]
    assert places.tolist() == [0, 1, 3, 4, 2, -1, 5, -1, 6, 7, -1, -1, 8, -1, -1, -1]


@pytest.mark.parametrize("layer", ["L0", "L1"])
def test_a_changed_patch_changes_the_key_of_its_own_name(layer):
    """In a Swin's first layers a key depends on its own patch alone (L0), or on its window (L1)."""
    family = tiny_models.FAMILIES["swin"]
    model = hs.Model(family.build())
    pixels = family.inputs()["pixel_values"][:1]
    changed = pixels.clone()
    changed[..., 8:12, 20:24] += 3.0  # the patch in row 2, column 5
    before, after = (model.run(inputs={"pixel_values": image}) for image in (pixels, changed))
    moved = (before.layer(layer).key - after.layer(layer).key).abs().sum((0, 2)) > 1e-4
    names = {before.key_tokens(layer)[place].text for place in moved.nonzero()[:, 0].tolist()}
    assert "2,5" in names
    window = {f"{row},{column}" for row in range(4) for column in range(4, 8)}
    assert names == {"2,5"} if layer == "L0" else names <= window


def test_a_trace_keeps_the_order_of_its_patches_on_disk(tmp_path):
    family = tiny_models.FAMILIES["swin"]
    trace = hs.Model(family.build()).run(inputs={"pixel_values": family.inputs()["pixel_values"][:1]})
    again = hs.load_trace(trace.save(tmp_path / "trace"))
    assert again.key_tokens("L1").texts == trace.key_tokens("L1").texts
    assert again.key_tokens("L1").texts[0] == "2,2"
    assert again.inputs == trace.inputs
