"""A mixture of experts in a saved page: the card says which experts a token took, with their weights."""

from pathlib import Path

import pytest
import tiny_models
import torch
import transformers
from families import enliven
from playwright.sync_api import expect
from small_configs import small_config

import headscope as hs
from browser.workbench import Workbench


@pytest.fixture(scope="module")
def mixtral(tmp_path_factory: pytest.TempPathFactory) -> hs.Model:
    folder = tmp_path_factory.mktemp("mixtral")
    torch.manual_seed(0)
    config = small_config("mixtral")
    config.vocab_size = tiny_models.VOCABULARY
    module = transformers.MixtralForCausalLM(config)
    enliven(module)
    module.save_pretrained(folder)
    tiny_models.tiny_tokenizer().save_pretrained(folder)
    return hs.load(folder)


def test_the_card_names_the_experts_of_the_token_in_focus(
    offline: Workbench, mixtral: hs.Model, tmp_path: Path
) -> None:
    trace = mixtral.run("the cat sat on the mat")
    assert isinstance(trace, hs.Trace)
    offline.visit(hs.head_view(trace, "L1H2", token=4).save(tmp_path / "experts.html").as_uri())
    card = offline.page.get_by_role("region", name="Experts")
    choices = trace.experts("L1")
    expect(card).to_contain_text(f"{trace.tokens['main'][4].text} took 2 of 4: weight of each")
    for expert, weight in zip(choices.ids[4].tolist(), choices.weights[4].tolist(), strict=True):
        row = card.get_by_role("listitem").filter(has_text=f"Expert {expert}")
        expect(row).to_contain_text(f"{weight:.2f}")
    # Without a token, the experts that most tokens took; in the other layer, that layer's.
    offline.press("Escape")
    expect(card).to_contain_text("Taken by most tokens, 2 of 4 each: share of tokens")
    shares = choices.share_of_tokens()
    busiest = card.get_by_role("listitem").first
    expect(busiest).to_contain_text(f"Expert {int(shares.argmax())}")
    expect(busiest).to_contain_text(f"{float(shares.max()):.2f}")


def test_a_model_without_experts_has_no_such_section(offline: Workbench, gpt: hs.Model, tmp_path: Path) -> None:
    trace = gpt.run("The doctor asked the nurse.")
    assert isinstance(trace, hs.Trace)
    offline.visit(hs.head_view(trace, "L3H2", token=2).save(tmp_path / "plain.html").as_uri())
    expect(offline.page.get_by_role("heading", name="Strongest connections")).to_be_visible()
    expect(offline.page.get_by_role("region", name="Experts")).to_have_count(0)
