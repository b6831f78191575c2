"""Addresses of heads and layers: how they print, how they are read, and what they find."""

import pytest

from headscope.errors import UnknownHeadError
from headscope.sites import Head, Site, describe, find, parse

HEADS = [
    Head(stack, layer, index, kind)
    for stack, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    for layer in range(2)
    for index in range(3)
]


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (Head("main", 5, 1), "L5H1"),
        (Head("encoder", 5, 1), "encoder.L5H1"),
        (Head("vision", 0, 11), "vision.L0H11"),
        (Head("decoder", 2, 0, "cross"), "cross.L2H0"),
        (Head("text_2", 2, 0, "cross"), "text_2.cross.L2H0"),
        (Site("main", 3), "L3"),
        (Site("decoder", 3, "cross"), "cross.L3"),
    ],
)
def test_an_address_prints_as_it_parses(head, text):
    assert str(head) == text
    assert parse(text) == head
    assert parse(f" {text} ") == head


def test_a_stack_may_be_written_out_where_it_could_be_left_out():
    assert parse("main.L1H2") == Head("main", 1, 2)
    assert parse("decoder.cross.L1H2") == Head("decoder", 1, 2, "cross")


@pytest.mark.parametrize(
    "text", ["", "L", "H3", "5.1", "l5h1", "L5H", "L-1H0", "L5H1x", "en coder.L5H1", ".L5H1", "L5 H1"]
)
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(UnknownHeadError, match="'L5H1'"):
        parse(text)


def test_heads_and_sites_lead_to_each_other():
    head = Head("decoder", 2, 1, "cross")
    assert head.site == Site("decoder", 2, "cross")
    assert head.site.head(1) == head
    assert Site("main", 2, "neurons").head(0) == Head("main", 2, 0)


def test_a_kind_that_does_not_show_in_the_address_is_printed_beside_it():
    assert repr(Site("main", 2)) == "Site('L2')"
    assert repr(Site("main", 2, "neurons")) == "Site('L2', kind='neurons')"
    assert repr(Head("main", 2, 1)) == "Head('L2H1')"


def test_heads_sort_by_layer_then_index():
    assert sorted([Head("main", 10, 0), Head("main", 2, 1), Head("main", 2, 0)]) == [
        Head("main", 2, 0),
        Head("main", 2, 1),
        Head("main", 10, 0),
    ]


def test_a_head_names_one_head_and_a_layer_all_of_its_heads():
    assert find("encoder.L1H2", HEADS) == [Head("encoder", 1, 2)]
    assert find(Head("decoder", 0, 0, "cross"), HEADS) == [Head("decoder", 0, 0, "cross")]
    assert find("cross.L1", HEADS) == [Head("decoder", 1, index, "cross") for index in range(3)]
    assert find(Site("decoder", 1), HEADS) == [Head("decoder", 1, index) for index in range(3)]


@pytest.mark.parametrize("place", ["L0H0", "encoder.L2", "encoder.L0H3", "cross.L7H0", Head("vision", 0, 0)])
def test_an_unknown_head_is_refused_with_those_that_exist(place):
    with pytest.raises(
        UnknownHeadError, match=r"there is no .*encoder\.L0H0 to encoder\.L1H2.*cross\.L0H0 to cross\.L1H2"
    ):
        find(place, HEADS)


def test_a_model_without_heads_says_so():
    assert describe([]) == "there are no heads"
