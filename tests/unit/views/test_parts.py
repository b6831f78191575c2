"""Every part of every family of model: valid messages whose numbers are the trace's."""

import numpy as np
import pytest
import torch
import transformers
from made_traces import random_layer, trace_of_layers
from small_configs import small_config
from tiny_models import FAMILIES

from headscope.attention import Formula
from headscope.errors import NotRecordedError, UnknownHeadError
from headscope.models import Model
from headscope.traces import Trace
from headscope.views.parts import part
from headscope.views.wire import Coded, decode


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_gives_valid_parts(name):
    family = FAMILIES[name]
    trace = Model(family.build()).run(inputs={key: value[:1] for key, value in family.inputs().items()})
    trace = trace[0] if isinstance(trace, list) else trace
    props = decode(part(trace, "trace").encode()).props
    stacks = {stack["name"]: stack for stack in props["stacks"]}
    maps = decode(part(trace, "maps?size=24").encode())
    scores = decode(part(trace, "scores").encode())
    assert scores.props["heads"] == [str(head) for head in trace.heads]
    assert all(np.isfinite(array).any() for array in scores.arrays.values())
    for layer in props["layers"]:
        assert stacks[layer["stack"]]["kind"] in ("text", "patches", "frames")
        site, shape = layer["site"], (layer["n_heads"], layer["n_queries"], layer["n_keys"])
        assert maps.arrays[site].bytes.max() > 0
        assert not layer["no_weights"]
        dense = decode(part(trace, f"layer/{site}?what=pattern").encode())
        assert dense.arrays["weights"].shape == shape
        exact = trace.pattern(f"{site}H0")
        assert dense.arrays["weights"][0] == pytest.approx(exact, rel=1e-3, abs=1e-6)
        query = decode(part(trace, f"row/{site}?query=0").encode())
        assert query.arrays["weights"][0] == pytest.approx(exact[0], abs=1e-6)
        key = decode(part(trace, f"row/{site}?key=1").encode())
        assert key.arrays["weights"][0] == pytest.approx(exact[:, 1], abs=1e-5)
        window = decode(part(trace, f"window/{site}H0?size=4").encode())
        assert max(window.arrays["weights"].shape) <= 4
        if not layer["no_scores"]:
            assert decode(part(trace, f"layer/{site}?what=scores").encode()).arrays["weights"].shape == shape
        assert ("norms" in dense.arrays) == (not layer["no_contributions"])


def test_maps_are_the_summarys_and_pooled_by_whole_factors():
    trace = trace_of_layers(random_layer(Formula(0.7), 200), random_layer(Formula(0.7), 200))
    whole, half = part(trace, "maps?size=96"), part(trace, "maps?size=48")
    summary_map = trace.layer("L1").summary.map.numpy()
    assert whole.props.cells == {"L0": (3, 3), "L1": (3, 3)}
    assert whole.arrays["L1"].bytes.tolist() == Coded.of(summary_map).bytes.tolist()
    assert half.props.cells["L1"] == (6, 6)
    pooled = torch.nn.functional.max_pool2d(torch.from_numpy(summary_map), 2, ceil_mode=True).numpy()
    assert half.arrays["L1"].bytes.tolist() == Coded.of(pooled).bytes.tolist()


def test_sides_of_different_length_are_pooled_each_by_its_own():
    cross = torch.rand(1, 10, 300)
    trace = Trace.from_patterns({"cross": [cross]}, {"encoder": ["x"] * 300, "decoder": ["y"] * 10})
    page_part = part(trace, "maps?size=24")
    assert page_part.props.cells["cross.L0"] == (1, 16)
    assert page_part.arrays["cross.L0"].bytes.shape == (1, 10, 19)


def test_experts_of_a_layer_are_those_of_the_trace():
    torch.manual_seed(0)
    module = transformers.MixtralForCausalLM(small_config("mixtral")).eval()
    trace = Model(module).run(inputs={"input_ids": torch.tensor([[5, 17, 42, 7]])})
    assert isinstance(trace, Trace)
    layers = decode(part(trace, "trace").encode()).props["layers"]
    assert [layer["n_experts"] for layer in layers] == [4, 4]
    experts = decode(part(trace, "experts/L1").encode())
    assert experts.props == {"site": "L1", "n_experts": 4}
    ids, weights = (np.asarray(experts.arrays[name]).tolist() for name in ("ids", "weights"))
    assert ids == trace.experts("L1").ids.tolist() and weights == trace.experts("L1").weights.tolist()
    with pytest.raises(UnknownHeadError, match="ask for L1"):
        part(trace, "experts/L1H0")
    with pytest.raises(NotRecordedError, match="no choice of experts"):
        part(trace_of_layers(random_layer(Formula(0.7), 5)), "experts/L0")
