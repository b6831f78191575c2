"""Types of attention, by hand and in models."""

import pytest
import torch
from tiny_tasks import gpt, marian

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.pruning import PrunableLayer, attention_type, layers_of
from headscope.sites import Site


@pytest.mark.parametrize(
    ("site", "name"),
    [
        (Site("main", 0), "self"),
        (Site("main", 0, "cross"), "cross"),
        (Site("encoder", 1), "encoder"),
        (Site("decoder", 1), "decoder"),
        (Site("decoder", 1, "cross"), "cross"),
        (Site("vision", 2), "vision"),
    ],
)
def test_the_type_of_a_layer(site: Site, name: str) -> None:
    assert attention_type(site) == name


def test_the_layers_of_a_translator_and_of_one_stack() -> None:
    assert layers_of(marian()) == [
        PrunableLayer(Site("encoder", 0), "encoder", 2, 2),
        PrunableLayer(Site("decoder", 0), "decoder", 2, 2),
        PrunableLayer(Site("decoder", 0, "cross"), "cross", 2, 2),
    ]
    assert [layer.type for layer in layers_of(gpt())] == ["self", "self"]


def test_a_model_without_heads_is_refused() -> None:
    with pytest.raises(HeadscopeError):
        layers_of(hs.Model(torch.nn.Linear(2, 2)))
