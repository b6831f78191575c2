"""Attention in bands, mapped to the positions it stands for."""

import pytest
import torch
from tiny_models import FAMILIES

import headscope as hs
from headscope.errors import InterventionError, NotRecordedError
from headscope.models import Model
from headscope.models.capture.longformer import dense_patterns


def test_a_band_by_hand():
    # Three tokens, one head, a window of one key to each side, no global token: columns are keys i−1, i, i+1.
    band = torch.tensor([[0.0, 0.6, 0.4], [0.2, 0.5, 0.3], [0.7, 0.3, 0.0]]).reshape(1, 3, 1, 3)
    patterns = dense_patterns(band, None, torch.zeros(1, 3, dtype=torch.bool))
    assert patterns[0, 0].tolist() == torch.tensor([[0.6, 0.4, 0.0], [0.2, 0.5, 0.3], [0.0, 0.7, 0.3]]).tolist()


def test_a_global_token_has_a_row_and_a_column_of_its_own():
    band = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.5, 0.4], [0.2, 0.6, 0.2, 0.0]]).reshape(1, 3, 1, 4)
    rows = torch.tensor([[0.3, 0.3, 0.4]]).reshape(1, 1, 1, 3)
    patterns = dense_patterns(band, rows, torch.tensor([[True, False, False]]))
    assert torch.allclose(patterns[0, 0], torch.tensor([[0.3, 0.3, 0.4], [0.1, 0.5, 0.4], [0.2, 0.6, 0.2]]))


@pytest.mark.parametrize("padded", [False, True])
def test_longformer_in_its_own_format(padded):
    family = FAMILIES["longformer"]
    inputs = family.padded() if padded else family.inputs()
    with torch.no_grad():
        out = family.build()(**inputs, output_attentions=True)
    model = Model(family.build())
    with model.session(record="heads") as session:
        model.module(**inputs)
    mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"])).bool()
    for layer, (band, rows) in enumerate(zip(out.attentions, out.global_attentions, strict=True)):
        for example, record in enumerate(session.captured[model.layout.layers[layer].site].records):
            assert record.n_queries == int(mask[example].sum())
            for head in range(record.n_heads):
                pattern = record.pattern(head)
                assert torch.allclose(pattern.sum(-1), torch.ones(len(pattern)), atol=1e-5)
                # The first token is global here: column 0 of the band; the window is two keys to each side.
                assert torch.allclose(pattern[0], rows[example, head, : len(pattern), 0], atol=1e-6)
                for query in range(1, len(pattern)):
                    assert torch.allclose(pattern[query, 0], band[example, head, query, 0], atol=1e-6)
                    for key in range(max(1, query - 2), min(len(pattern), query + 3)):
                        assert torch.allclose(
                            pattern[query, key], band[example, head, query, 1 + key - query + 2], atol=1e-6
                        )


def test_views_that_need_queries_are_told_there_are_none():
    family = FAMILIES["longformer"]
    model = Model(family.build())
    trace = model.run(inputs={name: tensor[:1] for name, tensor in family.inputs().items()})
    assert trace.pattern("L0H0").shape[0] == len(trace.tokens["main"])
    with pytest.raises(NotRecordedError, match="only its weights"):
        trace.query("L0H0")
    with pytest.raises(NotRecordedError, match="only its weights"):
        trace.contribution("L0H0")
    with pytest.raises(InterventionError, match="weights only"):
        model.run(trace.inputs, [hs.temperature("L0H0", 2.0)])
