"""Records on their way to the host: what shares memory, what is put back together."""

import gc
import weakref

import pytest
import torch
from tiny_models import FAMILIES

from headscope.models import Model
from headscope.models.capture.host_copies import HostCopies, fills_its_storage, without_gaps


def test_tensors_of_the_host_stay_as_they_are():
    tensors = {"lse": torch.randn(2, 3), "argmax": torch.zeros(2, 3, dtype=torch.int32)}
    copies = HostCopies()
    assert copies.start(tensors) == tensors
    copies.wait()


def test_figures_side_by_side_travel_together():
    whole = torch.empty(24)
    parts = dict(zip("ab", whole.split([12, 12]), strict=True))
    assert fills_its_storage(parts)
    assert not fills_its_storage({"a": parts["a"]}) and not fills_its_storage({"a": whole[:2], "b": whole[2:4]})


@pytest.mark.parametrize("record", ["rows", "heads"])
def test_a_record_is_the_same_with_its_own_tensors_put_back(record):
    model = Model(FAMILIES["gpt2"].build())
    trace = model.run(inputs={"input_ids": FAMILIES["gpt2"].inputs()["input_ids"][:1]}, record=record)
    for layer in trace.layers.values():
        tensors = layer.vectors_and_figures()
        copy = layer.with_tensors({name: tensor.clone() for name, tensor in tensors.items()})
        again = copy.vectors_and_figures()
        assert again.keys() == tensors.keys() and all(torch.equal(again[name], tensors[name]) for name in tensors)
        assert copy.formula is layer.formula and copy.site == layer.site


def test_what_a_run_recorded_goes_with_its_trace():
    model = Model(FAMILIES["gpt2"].build())
    inputs = {"input_ids": FAMILIES["gpt2"].inputs()["input_ids"][:1]}
    gc.collect()
    gc.disable()
    try:
        trace = model.run(inputs=inputs, record="heads")
        query = weakref.ref(next(iter(trace.layers.values())).query)
        del trace
        assert query() is None
    finally:
        gc.enable()


def test_what_is_cut_out_of_a_larger_tensor_is_copied_first():
    whole = torch.arange(24.0).view(2, 3, 4)
    turned = whole.transpose(0, 1)
    assert without_gaps(turned) is turned
    cut = without_gaps(whole[..., :2])
    assert cut.is_contiguous() and torch.equal(cut, whole[..., :2])
