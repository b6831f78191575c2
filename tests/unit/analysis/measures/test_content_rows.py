"""The strongest key of every row."""

import torch

from headscope.analysis.measures.content_rows import strongest


def test_the_fast_maximum_is_the_plain_one_and_the_first_of_equals():
    weights = torch.rand(3, 4, 5, 17)
    weights[0, 0, 0, 3] = weights[0, 0, 0, 9] = 2.0
    largest, place = strongest(weights)
    assert torch.equal(largest, weights.amax(-1)) and torch.equal(place, weights.argmax(-1)) and place[0, 0, 0] == 3
    double = strongest(weights.double())
    assert torch.equal(double[1], place)


def test_a_row_without_weight_has_no_strongest_key():
    assert strongest(torch.zeros(2, 3))[1].tolist() == [-1, -1]
