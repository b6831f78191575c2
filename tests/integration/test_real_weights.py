"""Real checkpoints: what we capture is what other implementations compute."""

import base64
import json

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, ViTForImageClassification

import headscope as hs
from headscope.errors import NotRecordedError

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def golden(shared_weights):
    """Activations of block 0 of the sorter, computed by another implementation."""
    data = json.loads((shared_weights / "nano-gpt-sort" / "golden.json").read_text())
    return {
        name: np.frombuffer(base64.b64decode(value["data"]), dtype=np.float32).reshape(value["shape"])
        for name, value in data.items()
        if isinstance(value, dict) and "data" in value
    }


def test_the_sorter_agrees_with_another_implementation(shared_weights, golden):
    model = hs.load(shared_weights / "nano-gpt-sort")
    traces = model.run(inputs={"input_ids": torch.tensor(golden["idx"]).long()}, record="full")
    assert len(traces) == 3
    for example, trace in enumerate(traces):
        for head in range(3):
            at = f"L0H{head}"
            assert np.abs(trace.query(at) - golden["q"][example, head]).max() <= TOLERANCE
            assert np.abs(trace.key(at) - golden["k"][example, head]).max() <= TOLERANCE
            assert np.abs(trace.value(at) - golden["v"][example, head]).max() <= TOLERANCE
            scores, expected = trace.scores(at), golden["att"][example, head]
            assert np.isneginf(scores[np.triu_indices(11, 1)]).all()
            seen = np.tril_indices(11)
            assert np.abs(scores[seen] - expected[seen]).max() <= TOLERANCE
            assert np.abs(trace.pattern(at) - golden["attSm"][example, head]).max() <= TOLERANCE
            mixed = golden["y"][example, :, head * 16 : (head + 1) * 16]
            assert np.abs(trace.mixed(at) - mixed).max() <= TOLERANCE
        for layer, name in ((0, "x"), (1, "block0"), (2, "block1"), (3, "block2")):
            assert np.abs(trace.tensor("residual", f"L{layer}").numpy() - golden[name][example]).max() <= 5e-5
        assert np.abs(trace.neurons("L0") - golden["gelu"][example]).max() <= 5e-5
        probabilities = trace.logits.softmax(-1).numpy()
        assert np.abs(probabilities - golden["probs"][example]).max() <= TOLERANCE


def test_the_sorter_sorts(shared_weights):
    model = hs.load(shared_weights / "nano-gpt-sort")
    written = model.generate("CBABBC", max_new_tokens=5)
    assert written.text.replace(" ", "").startswith("ABBBC"[:5]) or sorted(written.text) == list(written.text)


def test_minilm_matches_its_eager_self(shared_weights):
    folder = shared_weights / "all-minilm-l6-v2-fp16"
    model = hs.load(folder)
    plain = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    inputs = AutoTokenizer.from_pretrained(folder)("The cat sat on the mat.", "A dog ran home.", return_tensors="pt")
    with torch.no_grad():
        expected = plain(**inputs, output_attentions=True)
    trace = model.run(("The cat sat on the mat.", "A dog ran home."))
    for layer, weights in enumerate(expected.attentions):
        for head in range(12):
            assert np.abs(trace.pattern(f"L{layer}H{head}") - weights[0, head].numpy()).max() <= TOLERANCE
    with model.session():
        output = model.module(**inputs)
    assert torch.equal(output.last_hidden_state, expected.last_hidden_state)


def test_minilm_knows_related_sentences(shared_weights):
    model = hs.load(shared_weights / "all-minilm-l6-v2-fp16")

    def embedding(text):
        return model.run(text, record="full").residual("L5", after=True).mean(0)

    cat, kitten, tax = (
        embedding(sentence) for sentence in ("A cat sleeps.", "A kitten is napping.", "Taxes rose in March.")
    )
    cosine = [float(cat @ other / np.linalg.norm(cat) / np.linalg.norm(other)) for other in (kitten, tax)]
    assert cosine[0] > 0.5 and cosine[1] < 0.2


def test_stories_knows_stories_and_nothing_else(shared_weights):
    model = hs.load(shared_weights / "stories15m-llama-fp16")

    def loss(text):
        trace = model.run(text, record="full")
        ids = trace.inputs.model_inputs["input_ids"]
        return float(torch.nn.functional.cross_entropy(trace.logits[:-1].float(), ids[1:]))

    # Known of this checkpoint: 1.24 nats a token on a simple story, 8.4 on Wikipedia text.
    assert loss("The old farmer had a brown cow. Every morning he gave the cow some hay and sang a song to it.") < 2.5
    assert loss("The treaty was ratified by the senate in 1848, ceding territories north of the Rio Grande.") > 5.0
    assert "play" in model.generate("Lily loved to", max_new_tokens=8).text


def test_stories_matches_its_eager_self(shared_weights):
    folder = shared_weights / "stories15m-llama-fp16"
    model = hs.load(folder)
    plain = type(model.module).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    trace = model.run("Tom had a red ball. He", record="heads")
    ids = trace.inputs.model_inputs["input_ids"][None]
    with torch.no_grad():
        expected = plain(ids, output_attentions=True)
    for head in trace.heads:
        assert np.abs(trace.pattern(head) - expected.attentions[head.layer][0, head.index].numpy()).max() <= TOLERANCE
    with model.session():
        assert torch.equal(model.module(ids).logits, expected.logits)


def test_digits_are_read_and_match_eager(shared_weights):
    folder = shared_weights / "vit-mnist"
    model = hs.load(folder)
    samples = np.load(folder / "samples" / "mnist_test_first100.npz")
    traces = model.run(list(samples["images"]))
    right = [int(trace.predictions(1)[0].text) == label for trace, label in zip(traces, samples["labels"], strict=True)]
    assert sum(right) >= 95  # 97.21 % on the whole test set
    trace = traces[0]
    assert trace.tokens["main"].kind == "patches" and trace.tokens["main"].grid == (7, 7)
    plain = ViTForImageClassification.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = plain(trace.inputs.model_inputs["pixel_values"][None], output_attentions=True)
    for head in trace.heads:
        assert np.abs(trace.pattern(head) - expected.attentions[head.layer][0, head.index].numpy()).max() <= TOLERANCE


def test_half_precision_is_kept_when_asked_for(shared_weights, tmp_path):
    model = hs.load(shared_weights / "stories15m-llama-fp16", dtype="bfloat16")
    trace = model.run("Once upon a time", record="heads")
    assert trace.tensor("query", "L0H0").dtype == torch.bfloat16
    assert np.abs(trace.pattern("L2H3").sum(-1) - 1).max() < 1e-5
    again = hs.load_trace(trace.save(tmp_path / "trace"))
    assert torch.equal(again.tensor("key", "L1H1"), trace.tensor("key", "L1H1"))


def test_an_offloaded_model_runs_and_says_what_it_cannot_give(shared_weights):
    pytest.importorskip("accelerate")
    folder = shared_weights / "stories15m-llama-fp16"
    here = ("model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.norm", "lm_head")
    places = dict.fromkeys(here, "cpu") | {f"model.layers.{layer}": "disk" for layer in range(1, 6)}
    whole = hs.load(folder).run("Once upon a time")
    trace = hs.load(folder, device_map=places, dtype="float32").run("Once upon a time")
    assert np.array_equal(whole.pattern("L3H1"), trace.pattern("L3H1"))
    assert np.array_equal(whole.contribution("L0H1"), trace.contribution("L0H1"))
    with pytest.raises(NotRecordedError, match="offloaded"):
        trace.contribution("L3H1")
