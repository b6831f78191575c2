"""Activations of two runs for the page, as a table, as a figure and in files."""

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InputError
from headscope.models import Model
from headscope.views.activation_differences import difference_part, followed_candidate
from headscope.views.wire import decode

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(0)
    return Model(FAMILIES["gpt2"].build(), tiny_tokenizer())


@pytest.fixture(scope="module")
def both(model):
    return hs.compare(model.run(TEXT, [hs.silence("L0H1")]), model.run(TEXT))


def test_the_page_gets_both_runs(model, both):
    difference = model.activations_difference(both, k=2)
    part = decode(difference_part(difference).encode())
    norms = [np.asarray(part.arrays[f"{side}:norm"]) for side in ("a", "b")]
    assert norms[0] - norms[1] == pytest.approx(difference.norms, abs=1e-6)
    texts = np.array([*part.props["texts"], "none"])
    candidates = texts[np.asarray(part.arrays["candidate"])]
    for token in range(len(difference.tokens)):
        leading_texts = [prediction.text for prediction in difference.predictions(token)["L1"]]
        assert candidates[2, token].tolist()[: len(leading_texts)] == leading_texts
        assert set(candidates[2, token].tolist()[len(leading_texts) :]) <= {"none"}
    lens = difference.lens
    assert lens is not None and np.asarray(part.arrays["a:answer"]).shape == (3, len(difference.tokens), 2)
    assert texts[np.asarray(part.arrays["predicted"])[0, 1]] == lens.names[int(lens.answers[0, 1])]
    assert np.asarray(part.arrays["neuron"]).shape == np.asarray(part.arrays["b:value"]).shape


def test_whose_prediction_is_followed(model, both):
    lens = model.activations_difference(both).lens
    assert lens is not None
    for answer, (ids, first, other) in enumerate([followed_candidate(lens, "A"), followed_candidate(lens, "B")]):
        assert (ids == lens.answers[answer]).all()
        assert (first == lens.answer_logprobs[answer, 0]).all() and (other == lens.answer_logprobs[answer, 1]).all()
    _, first, other = followed_candidate(lens, "either")
    most = np.nan_to_num(np.abs(np.exp(lens.a) - np.exp(lens.b))).max(-1)
    assert np.abs(np.exp(first) - np.exp(other)) == pytest.approx(most, abs=1e-6)


def test_the_table_has_a_b_and_the_difference(model, both):
    difference = model.activations_difference(both)
    table = hs.activations_view(both, difference, token=3, whose="A").table()
    columns = table.columns
    assert columns["place"].tolist() == difference.places and set(columns["position"]) == {3}
    assert columns["norm A − B"] == pytest.approx(difference.norms[:, 3])
    assert np.isnan(columns["written by mlp A"][0])
    assert columns["log-probability A − B"] == pytest.approx(
        columns["log-probability A"] - columns["log-probability B"]
    )
    answer = difference.lens.names[int(difference.lens.answers[0, 3])]
    assert set(columns["prediction"]) == {answer}


def test_views_of_a_comparison_are_files_like_others(model, both, tmp_path):
    view = hs.activations_view(both, model, stream="norm")
    assert "difference, activations view" in view.title
    text = view.html()
    assert 'data-key="activations/main"' in text
    for stream in ("lens", "norm", "attention", "mlp", "cosine"):
        figure = hs.activations_view(both, model, stream=stream).figure()
        caption = " ".join(figure.get_supxlabel().split())
        assert "A − B" in caption and "full colour: a difference of" in caption and "more in A" in caption
    view.save(tmp_path / "difference.svg")
    assert hs.activations_view(both.difference(), model).kind == "activations"


def test_a_figure_has_the_signs(model, both):
    norms = model.activations_difference(both).norms
    figure = hs.activations_view(both, model, stream="norm").figure()
    (image,) = figure.axes[0].images
    drawn = np.asarray(image.get_array())
    assert (np.sign(drawn) == np.sign(norms)).all() and np.abs(drawn).max() == pytest.approx(1)


def test_what_does_not_fit_is_refused(model, both):
    trace = model.run(TEXT)
    with pytest.raises(InputError, match="activations_difference gives"):
        hs.activations_view(both, model.activations(trace))
    with pytest.raises(InputError, match="activations_difference gives"):
        hs.activations_view(trace, model.activations_difference(both))
    for subject in (trace, both):
        with pytest.raises(InputError, match="take the model"):
            hs.activations_view(subject)
    with pytest.raises(InputError, match="whose='C'"):
        hs.activations_view(both, model, whose="C")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 to"):
        hs.activations_view(both, model, token=99)
