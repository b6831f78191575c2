"""Anything a person gives a model becomes what the model takes, or is refused with a reason."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_tokenizers
import torch
import transformers
from PIL import Image
from torch import nn

import headscope as hs
from headscope.errors import HeadscopeWarning, InputError
from headscope.models.inputs.prepare import Inputs, batchable, collate, extend, prepare, ready_inputs

SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 37}
PATCHED = {"image_size": 32, "patch_size": 8, **SMALL}
SEQ2SEQ = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 24, "pad_token_id": 0,
}  # fmt: skip
NO_TEXT_IDS = {"bos_token_id": None, "eos_token_id": None}


@pytest.fixture(name="byte_tokenizer")
def _byte_tokenizer():
    return tiny_tokenizers.byte_tokenizer()


@pytest.fixture(name="piece_tokenizer")
def _piece_tokenizer():
    return tiny_tokenizers.piece_tokenizer()


@pytest.fixture(name="word_tokenizer")
def _word_tokenizer():
    return tiny_tokenizers.word_tokenizer()


@pytest.fixture(scope="module")
def bert():
    return transformers.BertModel(transformers.BertConfig(vocab_size=120, max_position_embeddings=40, **SMALL)).eval()


@pytest.fixture(scope="module")
def gpt():
    config = transformers.GPT2Config(vocab_size=320, n_positions=64, n_embd=32, n_layer=1, n_head=2, **NO_TEXT_IDS)
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def vit():
    return transformers.ViTModel(transformers.ViTConfig(**PATCHED)).eval()


@pytest.fixture(scope="module")
def marian():
    config = transformers.MarianConfig(vocab_size=10, decoder_start_token_id=0, eos_token_id=2, **SEQ2SEQ)
    return transformers.MarianMTModel(config).eval()


def image_processor(kind: str = "ViT", **options):
    return getattr(transformers, f"{kind}ImageProcessorPil")(size={"height": 32, "width": 32}, **options)


def test_a_pair_has_two_segments_and_counts_run_on(piece_tokenizer, bert):
    inputs = prepare(piece_tokenizer, bert, ("The cat sat. It looked.", "A dog. No!"))
    tokens = inputs.tokens["main"]
    assert inputs.kind == "pair" and (inputs.text, inputs.pair) == ("The cat sat. It looked.", "A dog. No!")
    first = next(token for token in tokens if token.segment == "B")
    assert (first.word, first.sentence, first.start) == (7, 2, 0)
    assert max(token.sentence for token in tokens if not token.special) == 3
    types = inputs.model_inputs["token_type_ids"].tolist()
    assert types == [int(token.segment == "B") for token in tokens]


def test_a_list_gives_a_list_and_an_inputs_comes_back_as_it_is(byte_tokenizer, gpt):
    first, two = prepare(byte_tokenizer, gpt, ["The doctor", "A dog"])
    assert first.kind == "text" and first.model_inputs["input_ids"].ndim == 1
    assert prepare(byte_tokenizer, gpt, two) is two


def test_inputs_survive_json(piece_tokenizer, bert):
    inputs = prepare(piece_tokenizer, bert, ("The cat", "a dog"))
    back = Inputs.from_json(json.loads(json.dumps(inputs.to_json())), dict(inputs.model_inputs))
    assert back == inputs
    assert inputs != prepare(piece_tokenizer, bert, ("The cat", "a mat"))


def test_a_long_text_is_refused_with_both_numbers_and_cut_only_on_request(piece_tokenizer, bert):
    text = "the dog sat " * 20
    with pytest.raises(InputError, match=r"\d+ tokens long but BertModel has positions for 40.*truncate=True"):
        prepare(piece_tokenizer, bert, text)
    with pytest.warns(HeadscopeWarning, match="tokens were cut off at its end"):
        inputs = prepare(piece_tokenizer, bert, text, truncate=True)
    assert len(inputs.tokens["main"]) == 40 and inputs.tokens["main"][-1].text == "[SEP]"
    assert inputs.text == text


def test_a_text_that_is_too_long_is_refused_before_its_tokens_are_made_readable(byte_tokenizer, gpt, monkeypatch):
    monkeypatch.setattr(
        "headscope.models.inputs.display_tokens.show", lambda *_: pytest.fail("tokens were made readable")
    )
    with pytest.raises(InputError, match="200,001 tokens long but GPT2LMHeadModel has positions for 64"):
        prepare(byte_tokenizer, gpt, "a" + "\u0301" * 100_000)


def test_the_limit_is_what_the_model_can_really_run(byte_tokenizer):
    ids = list(range(3, 23))
    roberta = transformers.RobertaModel(transformers.RobertaConfig(vocab_size=320, max_position_embeddings=20, **SMALL))
    with pytest.raises(InputError, match="positions for 18"):
        prepare(byte_tokenizer, roberta, inputs={"input_ids": ids[:19]})
    roberta(**collate([prepare(byte_tokenizer, roberta, inputs={"input_ids": ids[:18]})], roberta).model_inputs)
    t5 = transformers.T5EncoderModel(transformers.T5Config(vocab_size=320, d_model=32, d_kv=16, d_ff=32, num_layers=1))
    t5.config.n_positions = 8
    assert len(prepare(byte_tokenizer, t5, "The doctor asked the nurse a question").tokens["main"]) > 8
    llama = transformers.LlamaModel(transformers.LlamaConfig(vocab_size=320, max_position_embeddings=8, **SMALL))
    with pytest.warns(HeadscopeWarning, match="LlamaModel was trained on at most 8"):
        assert len(prepare(byte_tokenizer, llama, "The doctor asked the nurse a question 123456").tokens["main"]) > 8
    with pytest.warns(HeadscopeWarning, match="tokens were cut off at its end"):
        prepare(byte_tokenizer, llama, "The doctor asked the nurse a question 123456", truncate=True)
    with pytest.warns(HeadscopeWarning, match="20 tokens long, and LlamaModel was trained on at most 8"):
        prepare(byte_tokenizer, llama, inputs={"input_ids": ids})


def test_rotations_from_a_table_end_where_the_table_ends(byte_tokenizer):
    config = transformers.GPTJConfig(
        vocab_size=320, n_positions=8, n_embd=32, n_layer=1, n_head=2, rotary_dim=8, **NO_TEXT_IDS
    )
    with pytest.raises(InputError, match="positions for 8"):
        prepare(byte_tokenizer, transformers.GPTJModel(config).eval(), "The doctor asked the nurse a question 123456")


def test_a_run_beyond_the_trained_length_equals_the_model_and_carries_a_warning(byte_tokenizer):
    config = transformers.LlamaConfig(vocab_size=320, max_position_embeddings=8, **SMALL)
    module = transformers.LlamaForCausalLM(config).eval()
    model = hs.Model(module, byte_tokenizer)
    with pytest.warns(HeadscopeWarning, match="trained on at most 8"):
        trace = model.run("The doctor asked the nurse a question", record="full")
    assert any("trained on at most 8" in note for note in trace.warnings)
    ids = trace.inputs.model_inputs["input_ids"]
    with torch.no_grad():
        expected = module(ids[None]).logits[0]
    assert torch.allclose(trace.logits, expected, atol=1e-5)
    assert not any("trained on" in note for note in model.run("a", record="rows").warnings)


def test_a_home_made_module_is_given_what_its_forward_calls_its_input(byte_tokenizer):
    class Mine(nn.Module):
        def forward(self, idx):
            return idx

    first, two = prepare(byte_tokenizer, Mine(), ["The dog", "The doctor asked the"])
    assert list(first.model_inputs) == ["idx"]
    assert batchable([first, two, first], Mine()) == [[0, 2], [1]]
    with pytest.raises(InputError, match="takes no 'attention_mask'"):
        collate([first, two], Mine(), byte_tokenizer)


def test_a_chat_is_written_by_the_models_template(byte_tokenizer, gpt):
    messages = [{"role": "user", "content": "The doctor?"}, {"role": "assistant", "content": "No."}]
    with pytest.raises(InputError, match="no chat template"):
        prepare(byte_tokenizer, gpt, messages)
    byte_tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}<|endoftext|>{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    try:
        done, open_ = prepare(byte_tokenizer, gpt, [messages, messages[:1]])
    finally:
        byte_tokenizer.chat_template = None
    assert done.kind == "chat" and done.text == "user: The doctor?<|endoftext|>assistant: No.<|endoftext|>"
    assert open_.text.endswith("<|endoftext|>assistant:")
    assert [token.text for token in done.tokens["main"] if token.special] == ["<|endoftext|>"] * 2


def test_generation_adds_tokens_at_the_end(byte_tokenizer, gpt):
    whole = prepare(byte_tokenizer, gpt, "The doctor asked 🦄 the nurse.")
    ids = whole.model_inputs["input_ids"]
    start = prepare(byte_tokenizer, gpt, inputs={"input_ids": ids[:5]})
    longer = extend(start, byte_tokenizer, gpt, ids[5:])
    assert longer.tokens == whole.tokens and longer.text == whole.text


def tiny_translators():
    bart = {"vocab_size": 10, **SEQ2SEQ}
    encoder = transformers.BertConfig(vocab_size=10, **SMALL)
    decoder = transformers.BertConfig(vocab_size=12, is_decoder=True, add_cross_attention=True, **SMALL)
    both = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    both.decoder_start_token_id, both.pad_token_id = 1, 0
    t5 = transformers.T5Config(
        vocab_size=10, d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    return {
        "bart": lambda: transformers.BartForConditionalGeneration(transformers.BartConfig(**bart)),
        "marian": lambda: transformers.MarianMTModel(transformers.MarianConfig(decoder_start_token_id=0, **bart)),
        "mbart": lambda: transformers.MBartForConditionalGeneration(transformers.MBartConfig(**bart)),
        "m2m100": lambda: transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**bart)),
        "t5": lambda: transformers.T5ForConditionalGeneration(t5),
        "bert2bert": lambda: transformers.EncoderDecoderModel(both),
    }


@pytest.mark.filterwarnings("ignore:Version v4.12.0:FutureWarning")
@pytest.mark.parametrize("family", ["bart", "marian", "mbart", "m2m100", "t5", "bert2bert"])
def test_the_decoder_reads_what_the_model_makes_of_its_labels(family, word_tokenizer):
    model = tiny_translators()[family]().eval()
    first = prepare(word_tokenizer, model, ("the nurse asked .", "a doctor asked"))
    two = prepare(word_tokenizer, model, "a", target="the doctor asked a nurse .")
    assert first.kind == "translation" and not first.needs_target
    assert first.tokens["decoder"].texts[1:] == ["a", "doctor", "asked"] and first.tokens["decoder"][0].special

    seen = {}
    hook = model.get_decoder().register_forward_pre_hook(
        lambda module, positional, named: seen.update(named), with_kwargs=True
    )
    labels = torch.tensor([word_tokenizer(text_target="a doctor asked").input_ids])
    model(input_ids=first.model_inputs["input_ids"][None], labels=labels)
    hook.remove()
    assert torch.equal(seen["input_ids"][0], first.model_inputs["decoder_input_ids"])

    alone = model(**collate([first], model, word_tokenizer).model_inputs).logits[0]
    batch = collate([first, two], model, word_tokenizer)
    assert batch.is_padded and batch.real["decoder"].sum(1).tolist() == [4, 7]
    together = model(**batch.model_inputs).logits[0, : len(alone)]
    assert torch.allclose(alone, together, atol=1e-5)


def test_a_source_alone_waits_for_its_target(word_tokenizer, marian):
    inputs = prepare(word_tokenizer, marian, "the doctor")
    assert inputs.needs_target and list(inputs.tokens) == ["encoder"]
    done = extend(inputs, word_tokenizer, marian, [0, 4, 7])
    assert not done.needs_target and done.tokens["decoder"].texts == ["<pad>", "the", "nurse"]
    assert done.target == "the nurse"


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_padding_on_the_right_leaves_real_positions_as_they_are(name, request, piece_tokenizer, byte_tokenizer):
    model = request.getfixturevalue(name)
    tokenizer = piece_tokenizer if name == "bert" else byte_tokenizer
    examples = prepare(tokenizer, model, ["The dog", "The doctor asked the nurse."])
    batch = collate(examples, model, tokenizer)
    single = collate(examples[:1], model, tokenizer)
    assert "attention_mask" in batch.model_inputs and "attention_mask" not in single.model_inputs
    assert batch.real["main"].sum(1).tolist() == [len(example.tokens["main"]) for example in examples]
    alone, together = model(**single.model_inputs)[0][0], model(**batch.model_inputs)[0][0]
    assert torch.allclose(alone, together[: len(alone)], atol=1e-5)
    moved = batch.to("cpu", torch.float16)
    assert moved.model_inputs["input_ids"].dtype == torch.long


def test_ready_inputs_stay_as_they_are_and_padding_on_either_side_is_known(byte_tokenizer, gpt):
    ids = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]])
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    batch = ready_inputs(byte_tokenizer, gpt, {"input_ids": ids, "attention_mask": mask})
    assert batch.model_inputs["input_ids"] is not None and torch.equal(batch.model_inputs["input_ids"], ids)
    assert torch.equal(batch.real["main"], mask.bool())
    assert [len(example.tokens["main"]) for example in batch.examples] == [2, 2, 4]
    right, left, whole = batch.examples
    assert right.model_inputs["input_ids"].tolist() == [5, 6] and "attention_mask" not in right.model_inputs
    assert left.model_inputs["attention_mask"].tolist() == [0, 0, 1, 1]
    assert list(whole.model_inputs) == ["input_ids"]
    replayed = gpt(**collate([left], gpt).model_inputs).logits[0, 2:]
    assert torch.allclose(replayed, gpt(**batch.model_inputs).logits[1, 2:], atol=1e-5)


def test_ready_inputs_come_as_lists_arrays_or_a_tokenizers_output(piece_tokenizer, bert):
    expected = prepare(piece_tokenizer, bert, "the dog")
    encoding = piece_tokenizer("the dog", return_tensors="pt")
    assert prepare(piece_tokenizer, bert, inputs=encoding).tokens["main"].texts == expected.tokens["main"].texts
    for ids in (encoding["input_ids"][0].tolist(), encoding["input_ids"].numpy()):
        inputs = prepare(None, bert, inputs={"input_ids": ids})
        assert inputs.kind == "ready"
        assert inputs.tokens["main"].texts == [str(number) for number in encoding["input_ids"][0].tolist()]


@pytest.mark.parametrize(
    ("ready", "message"),
    [
        ({"input_ids": [1, 2, 999]}, r"token id 999 at \[0, 2\]: the vocabulary has 120 \(0 to 119\)"),
        ({"input_ids": [1, -100]}, "token id -100"),
        ({"input_ids": [0.5, 1.5]}, "must be whole numbers"),
        ({"input_ids": [[1, 2], [3]]}, "equally long rows"),
        ({"input_ids": []}, "is empty"),
        ({"input_ids": [[[1]]]}, r"\[tokens\] or \[batch, tokens\]"),
        ({"input_ids": [1, 2], "attention_mask": [1, 1, 1]}, r"'attention_mask' has shape \[1, 3\]"),
        ({"input_ids": [[1, 2]], "attention_mask": [[0, 0]]}, "hides every position"),
        ({"input_ids": [[1, 2], [3, 4]], "token_type_ids": [[0, 0]]}, "do not agree on the number of examples"),
        ({"inputs_embeds": torch.full((3, 32), torch.nan)}, "NaN"),
        ({"pixel_values": torch.zeros(3, 32, 32)}, "takes no 'pixel_values': its inputs are input_ids"),
        ({"input_ids": list(range(50))}, "50 tokens but BertModel has positions for 40"),
    ],
)
def test_wrong_ready_inputs_are_refused(bert, ready, message):
    with pytest.raises(InputError, match=message):
        prepare(None, bert, inputs=ready)


def test_text_that_says_nothing_is_refused(byte_tokenizer, gpt):
    for text in ("", "  \n\t "):
        with pytest.raises(InputError, match="the text is empty"):
            prepare(byte_tokenizer, gpt, text)
    with pytest.raises(InputError, match="list is empty"):
        prepare(byte_tokenizer, gpt, [])
    with pytest.raises(InputError, match="nothing to run"):
        prepare(byte_tokenizer, gpt)
    with pytest.raises(InputError, match="UTF-8"):
        prepare(byte_tokenizer, gpt, "a \ud800 b")


def test_a_pair_for_a_causal_model_is_refused(byte_tokenizer, gpt):
    with pytest.raises(InputError, match="GPT2LMHeadModel is causal"):
        prepare(byte_tokenizer, gpt, ("a", "b"))
    with pytest.raises(InputError, match="is causal"):
        prepare(byte_tokenizer, gpt.transformer, "a", pair="b")


def test_a_target_for_a_model_without_a_decoder_is_refused(piece_tokenizer, bert, word_tokenizer, marian):
    with pytest.raises(InputError, match="no decoder beside an encoder"):
        prepare(piece_tokenizer, bert, "the dog", target="a cat")
    with pytest.raises(InputError, match="as `target=`"):
        prepare(word_tokenizer, marian, "the", pair="a")


def test_the_wrong_kind_of_input_is_refused(tmp_path, byte_tokenizer, gpt, vit):
    with pytest.raises(InputError, match="an image was given, but GPT2LMHeadModel takes text"):
        prepare(byte_tokenizer, gpt, Image.new("RGB", (4, 4)))
    with pytest.raises(InputError, match="takes text, not an array"):
        prepare(byte_tokenizer, gpt, np.zeros((4, 4, 3)))
    with pytest.raises(InputError, match=r"sound was given, but GPT2LMHeadModel takes text.*read_text"):
        prepare(byte_tokenizer, gpt, Path("speech.wav"))
    with pytest.raises(InputError, match="the file 'a cat' does not exist"):
        prepare(image_processor(), vit, "a cat")
    with pytest.raises(InputError, match="sound was given, but ViTModel takes images"):
        prepare(image_processor(), vit, audio=np.zeros(9), sampling_rate=9)
    with pytest.raises(InputError, match="int is not something a model can read"):
        prepare(byte_tokenizer, gpt, 7)


def test_text_without_a_tokenizer_says_what_to_do(bert):
    with pytest.raises(InputError, match=r"hs\.Model\(module, tokenizer\).*`inputs={'input_ids': …}`"):
        prepare(None, bert, "the dog")
    with pytest.raises(InputError, match="not something that prepares inputs"):
        prepare("bert", bert, "the dog")


def test_another_models_tokenizer_is_noticed(byte_tokenizer, bert):
    with pytest.raises(InputError, match="not this model's"):
        prepare(byte_tokenizer, bert, "The doctor asked the nurse")


def test_a_real_bert_tokenizer_reads_names_and_marks(shared_weights):
    folder = shared_weights / "all-minilm-l6-v2-fp16"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(folder, num_hidden_layers=1))
    inputs = prepare(tokenizer, model, ("Headscope isn't dull.", "Наука 今天"))
    tokens = inputs.tokens["main"]
    assert tokens.texts[:8] == ["[CLS]", "Heads", "cope", "isn", "'", "t", "dull", "."]
    assert [token.word for token in tokens][:8] == [None, 0, 0, 1, 1, 1, 2, 3]
    with pytest.raises(InputError, match="702 tokens long but BertModel has positions for 512"):
        prepare(tokenizer, model, "dog " * 700)
