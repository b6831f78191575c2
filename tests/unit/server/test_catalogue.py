"""Which models may be loaded, and what the page is told of them."""

from pathlib import Path

import pytest
import tiny_models

import headscope as hs
from headscope.models.inputs.accepted import Intake
from headscope.server.catalogue import Catalogue, kinds_of, shape_of
from headscope.server.errors import Refused
from headscope.server.options import Limits, Options


def refusal(catalogue: Catalogue, name: str) -> Refused:
    with pytest.raises(Refused) as caught:
        catalogue.resolve(name)
    return caught.value


def test_folders_outside_are_refused_whether_they_exist_or_not(models: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(models / "gpt")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    catalogue = Catalogue(Options(allow=(inside,)))
    messages = set()
    for name in (
        str(models / "gpt"),
        str(inside / "link"),
        str(inside / ".." / "other"),
        f"{inside}/../../../etc",
        f"{inside}er",
        str(tmp_path / "none"),
        str(tmp_path / "loop"),
        "/etc",
        "~",
        "~nobody-here/model",
        ".",
        "..",
        "./none",
        "a/b/c",
        "..\\windows",
    ):
        problem = refusal(catalogue, name)
        assert problem.status == 403 and problem.problem.error == "FolderNotAllowed", name
        messages.add(problem.problem.message.replace(repr(name), "…"))
    assert len(messages) == 1  # nothing can be learned about what exists
    assert "--allow DIR" in problem.problem.hint and str(inside) in problem.problem.message


def test_names_that_may_be_a_hubs_do_not_tell_whether_a_folder_is_there(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("secret", "se cret", "secret/deep")
    before = [refusal(Catalogue(Options(allow=(tmp_path / "models",))), name) for name in names]
    for name in names:
        (tmp_path / name).mkdir()
    after = [refusal(Catalogue(Options(allow=(tmp_path / "models",))), name) for name in names]
    assert [(problem.status, problem.problem) for problem in before] == [
        (problem.status, problem.problem) for problem in after
    ]


def test_a_folder_under_an_allowed_one_has_one_name(models: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(models)
    catalogue = Catalogue(Options(allow=(link,)))
    for name in (models / "gpt", link / "gpt", models / "vit" / ".." / "gpt"):
        assert catalogue.resolve(str(name)) == str(models / "gpt")


def test_a_folder_given_at_the_start_needs_no_permission(models: Path) -> None:
    catalogue = Catalogue(Options(models=(str(models / "vit" / ".." / "gpt"),)))
    assert catalogue.resolve(str(models / "gpt")) == str(models / "gpt") == catalogue.default
    assert refusal(catalogue, str(models / "vit")).status == 403


def test_hub_ids_need_permission() -> None:
    problem = refusal(Catalogue(Options()), "openai-community/gpt2")
    assert problem.status == 403 and "--allow-hub" in problem.problem.hint
    assert Catalogue(Options(allow_hub=True)).resolve("openai-community/gpt2") == "openai-community/gpt2"
    assert Catalogue(Options(models=("gpt2",))).resolve("gpt2") == "gpt2"


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 2000, "a b", "a/..", "é/è?"])
def test_what_is_no_name_is_refused(name: str) -> None:
    assert refusal(Catalogue(Options(allow_hub=True)), name).status in (403, 422)


def test_an_unknown_built_in_model_names_the_others() -> None:
    problem = refusal(Catalogue(Options()), "builtin:none")
    assert problem.status == 404 and "builtin:gpt" in problem.problem.message
    assert refusal(Catalogue(Options(allow_hub=True)), "builtin:../gpt").status == 404


def test_a_model_is_described_once_it_is_loaded(models: Path) -> None:
    folder = str(models / "gpt")
    catalogue = Catalogue(Options(models=(folder,)))
    assert catalogue.props(folder).kinds == [] and not catalogue.props(folder).is_loaded
    catalogue.load(folder)
    props = catalogue.props(folder)
    assert props.is_loaded and props.kinds == ["text"] and props.shape == "2 × 4" and props.max_tokens == 1024
    assert props.coverage.startswith("2/2") and props.covers == "all 2 attention layers can be seen and edited"
    assert next(model.name for model in catalogue.all()) == folder


def test_built_in_models_come_with_their_card_and_presets() -> None:
    catalogue = Catalogue(Options())
    assert catalogue.default == "builtin:gpt"
    catalogue.load("builtin:gpt")
    props = catalogue.props("builtin:gpt")
    assert "induction" in props.about and props.shape == "6 × 8" and props.kinds == ["text"]
    assert props.presets[0].text == "The doctor asked the nurse a question. She"
    catalogue.load("builtin:vit")
    assert catalogue.props("builtin:vit").presets[0].media == "preset:sailing boat"
    assert catalogue.props("builtin:bert").about.startswith("English, masked")


def test_only_the_models_used_last_stay_loaded(models: Path) -> None:
    default, first, second = (str(models / name) for name in ("gpt", "vit", "long"))
    catalogue = Catalogue(Options(models=(default,), allow=(models,), limits=Limits(other_models=1)))
    for name in (default, first, second):
        catalogue.load(name)
    assert [catalogue.is_loaded(name) for name in (default, first, second)] == [True, False, True]
    assert catalogue.props(second).kinds == ["text"]


@pytest.mark.parametrize(
    ("family", "tokenizer", "kinds", "shape"),
    [
        ("bert", tiny_models.tiny_bert_tokenizer, ["text", "pair"], "2 × 4"),
        ("gpt2", tiny_models.tiny_tokenizer, ["text"], "2 × 4"),
        ("gpt2", lambda: None, [], "2 × 4"),
        ("marian", tiny_models.tiny_tokenizer, ["source-target"], "encoder 2 × 4, decoder 3 × 4, cross 3 × 4"),
        ("vit", lambda: None, ["image"], "2 × 4"),
    ],
)
def test_kinds_and_shape(family: str, tokenizer, kinds: list[str], shape: str) -> None:
    model = hs.Model(tiny_models.FAMILIES[family].build(), tokenizer())
    assert kinds_of(Intake.of(model.processor, model.module)) == kinds
    assert shape_of(model.layout.layers) == shape


def test_a_chat_template_makes_a_chat_model() -> None:
    tokenizer = tiny_models.tiny_tokenizer()
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    assert kinds_of(Intake.of(tokenizer, tiny_models.FAMILIES["gpt2"].build())) == ["text", "chat"]


def test_presets_of_built_in_models_are_told_before_these_are_loaded() -> None:
    catalogue = Catalogue(Options())
    props = catalogue.props("builtin:gpt")
    assert not props.is_loaded and props.presets and all(preset.name for preset in props.presets)
    assert catalogue.props("gpt").presets == []
