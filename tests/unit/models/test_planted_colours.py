"""A model whose words look at the patches of their colour: the right ones light up, and a blocked region does not."""

import numpy as np
import planted_vision_language as planted
import pytest
import torch

import headscope as hs
from headscope.errors import InterventionError, UnknownTokenError
from headscope.models import Model

SIZE = (160, 120)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(*planted.planted())


@pytest.fixture(scope="module")
def written(model):
    return model.generate(planted.TEXT, image=planted.picture(SIZE), max_new_tokens=8)


def weight_on(trace: hs.Trace, word: str, box: str, head: str = planted.HEAD) -> float:
    tokens = trace.tokens["main"]
    row = trace.pattern(head, rows=tokens.positions(word)[-1])[0]
    return float(row[tokens.positions(box)].sum())


def region(word: str) -> str:
    return "box:" + ",".join(map(str, planted.boxes(SIZE)[word]))


def test_each_word_of_the_answer_lights_the_patches_of_its_colour(model, written):
    assert written.text.split() == ["red", "green", "blue", "."]
    trace = written.trace
    for word in planted.COLOURS:
        assert weight_on(trace, word, region(word)) > 0.98
        for other in planted.COLOURS.keys() - {word}:
            assert weight_on(trace, word, region(other)) < 0.01
        row = trace.pattern(planted.HEAD, rows=trace.tokens["main"].positions(word)[-1])[0]
        strongest = trace.tokens["main"][int(row.argmax())].patch
        left, top, right, bottom = planted.boxes(SIZE)[word]
        assert strongest is not None and strongest.touches((left + 1, top + 1, right - 1, bottom - 1))


def test_words_stay_words_and_image_tokens_are_rows_and_columns(written):
    tokens = written.trace.tokens["main"]
    assert tokens.texts[:2] == ["0,0", "0,1"] and tokens.texts[256:261] == ["Which", "colours", "are", "there", "?"]
    patch = tokens[16 * 2 + 3].patch
    assert patch is not None and (patch.row, patch.column, patch.area) == (2, 3, 0)
    assert patch.box == (30.0, 15.0, 40.0, 22.5) and patch.drawn == (24.0, 16.0, 32.0, 24.0)
    assert tokens[256].patch is None
    words = written.trace.words()
    assert np.allclose(words.pattern(planted.HEAD).sum(-1), 1, atol=1e-5)


def test_a_region_is_blocked_and_nothing_else(model, written):
    inputs = written.trace.inputs
    edit = hs.block(planted.HEAD, "red", region("red"))
    assert repr(edit) == f"hs.block('{planted.HEAD}', 'red', '{region('red')}')"
    blocked = model.run(inputs, [edit])
    assert weight_on(blocked, "red", region("red")) == 0.0
    assert weight_on(blocked, "green", region("green")) > 0.98
    places = blocked.tokens["main"].positions("red")
    before, after = (trace.pattern(planted.HEAD) for trace in (model.run(inputs), blocked))
    others = np.setdiff1d(np.arange(len(before)), places)
    assert (before[others] == after[others]).all()
    assert np.allclose(after[places].sum(-1), 1, atol=1e-6)
    assert (blocked.pattern("L1H1") == written.trace.pattern("L1H1")).all()


def test_a_region_is_blocked_while_the_model_writes(model):
    edit = hs.block(planted.HEAD, range(256, 261), region("blue"))
    trace = model.generate(planted.TEXT, [edit], image=planted.picture(SIZE), max_new_tokens=4).trace
    assert weight_on(trace, "?", region("blue")) == 0.0
    assert weight_on(trace, "blue", region("blue")) > 0.98


def test_a_region_is_blocked_for_a_word_that_is_still_to_be_written(model, written):
    place = written.trace.tokens["main"].positions("green")[0]
    edit = hs.block(planted.HEAD, [place], region("green"))
    trace = model.generate(planted.TEXT, [edit], image=planted.picture(SIZE), max_new_tokens=4).trace
    assert trace.tokens["main"].positions("green") == [place]
    assert weight_on(trace, "green", region("green")) == 0.0
    assert weight_on(trace, "blue", region("blue")) > 0.98
    assert trace.edits == (repr(edit),)
    # What the model ends before is left alone; what it could not have written is refused.
    options = {"image": planted.picture(SIZE), "max_new_tokens": 8}
    short = model.generate(planted.TEXT, [hs.block(planted.HEAD, [267], 0)], **options)
    assert len(short.trace.tokens["main"]) == 266 and short.text == written.text
    with pytest.raises(UnknownTokenError, match="there is no token 269"):
        model.generate(planted.TEXT, [hs.block(planted.HEAD, [269], 0)], **options)


def test_regions_that_are_none_are_refused_in_words(model, written):
    tokens = written.trace.tokens["main"]
    for box, message in (
        ("box:1,2,3", "is no box"),
        ("box:30,20,10,40", "is no box"),
        ("box:a,b,c,d", "is no box"),
        ("box:400,0,500,50", "the picture reaches to 160,120"),
    ):
        with pytest.raises(UnknownTokenError, match=message):
            tokens.positions(box)
    with pytest.raises(InterventionError, match="no places in one"):
        model.run("Which colours are there ?", [hs.block("L0", 0, "box:0,0,9,9")])


def test_it_is_kept_with_the_trace(written, tmp_path):
    trace = hs.load_trace(written.trace.save(tmp_path / "trace"))
    assert trace.tokens == written.trace.tokens and trace.inputs == written.trace.inputs
    assert trace.inputs is not None and written.trace.inputs is not None
    assert trace.inputs.seen["main"].areas == written.trace.inputs.seen["main"].areas


def test_a_text_without_a_place_for_the_picture_gets_one_before_it(model):
    with pytest.warns(hs.HeadscopeWarning, match="'<image>' was put before it"):
        trace = model.run("Which colours are there ?", image=planted.picture(SIZE))
    assert trace.tokens["main"].texts[0] == "0,0"


def test_two_thousand_image_tokens_hold_no_maps():
    module, processor = planted.planted(side=360, patch=8)
    model = Model(module, processor, verify=False)
    text = f"{planted.TEXT} red"
    trace = model.run(text, image=planted.picture((720, 540)), record="heads")
    tokens = trace.tokens["main"]
    n_image = sum(token.patch is not None for token in tokens)
    assert n_image == 2025
    largest = max(tensor.numel() for layer in trace.layers.values() for tensor in layer.vectors_and_figures().values())
    assert largest < len(tokens) ** 2 / 20 and not any(layer.stored for layer in trace.layers.values())
    row = trace.pattern(planted.HEAD, rows=tokens.positions("red")[-1])[0]
    red = [*map(str, planted.boxes((720, 540))["red"])]
    assert row[tokens.positions(f"box:{','.join(red)}")].sum() > 0.98
    assert torch.isfinite(torch.tensor(row)).all()
