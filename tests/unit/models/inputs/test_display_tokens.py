"""Tokens read as a person would write them, with any tokenizer and any script."""

import random
import threading

import pytest
import regex
import tiny_tokenizers
import transformers
from tiny_tokenizers import SENTENCES
from tokenizers import Tokenizer, models, pre_tokenizers

from headscope.errors import HeadscopeWarning
from headscope.models.inputs.display_tokens import encode, tokens_of_ids
from headscope.models.inputs.segmentation import GRAPHEME, sentences_of, words_of


@pytest.fixture(name="byte_tokenizer")
def _byte_tokenizer():
    return tiny_tokenizers.byte_tokenizer()


@pytest.fixture(name="piece_tokenizer")
def _piece_tokenizer():
    return tiny_tokenizers.piece_tokenizer()


def read(tokenizer, text: str, **options):
    encoded = encode(tokenizer, text, **options)
    return encoded.fields, encoded.display()


def words(text: str) -> list[str]:
    text_by_word: dict[int, str] = {}
    for place, word in words_of(text)[0].items():
        text_by_word[word] = text_by_word.get(word, "") + text[place]
    return list(text_by_word.values())


def test_a_word_keeps_its_apostrophe_and_hyphen_and_a_mark_is_a_word():
    assert words("don't well-known, 42!") == ["don't", "well-known", ",", "42", "!"]


def test_every_chinese_and_japanese_character_is_a_word_and_other_scripts_have_runs():
    assert words("你好 мир カナ") == ["你", "好", "мир", "カ", "ナ"]


def test_letters_keep_their_marks_and_a_family_is_one_word():
    assert words("שָׁלוֹם عَرَبِيّ 👩‍👩‍👧!") == ["שָׁלוֹם", "عَرَبِيّ", "👩‍👩‍👧", "!"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three? Four… Five", 5),
        ("Mr. Smith met Dr. J. R. Jones at 3.14 p.m. on e.g. a hill.", 1),
        ('He said "Go!" and left. She stayed.', 2),
        ("今天很好。我们去。", 2),
        ("a title\na line\n\nanother", 3),
        ("she said no. he left.", 2),
        ("   ", 1),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text, count):
    assert max(sentences_of(text)) + 1 == count


def test_word_pieces_show_the_persons_own_text(piece_tokenizer):
    _, tokens = read(piece_tokenizer, "The Doctor asked")
    word_tokens = [token for token in tokens if not token.special]
    assert "".join(token.text for token in word_tokens) == "TheDoctorasked"
    assert [tokens[0].text, tokens[-1].text] == ["[CLS]", "[SEP]"]
    assert {token.word for token in word_tokens} == {0, 1, 2}
    assert all("The Doctor asked"[token.start : token.end] == token.text for token in word_tokens)


def test_a_split_character_is_shown_whole_with_its_part(byte_tokenizer):
    _, tokens = read(byte_tokenizer, "The 🦄 你\n\tend")
    assert [text for text in tokens.texts if "🦄" in text] == [f"🦄 {part}/4" for part in range(1, 5)]
    assert [text for text in tokens.texts if "你" in text] == ["你 1/3", "你 2/3", "你 3/3"]
    assert "⏎" in tokens.texts and "⇥" in tokens.texts and "␣" in tokens.texts
    assert not any(mark in "".join(tokens.texts) for mark in "Ġð�")


def test_a_family_emoji_and_an_accent_of_its_own_are_one_character(byte_tokenizer):
    _, tokens = read(byte_tokenizer, "👩‍👧 e\u0301")
    assert tokens.texts[0] == "👩‍👧 1/11"
    assert tokens.texts[-3:] == ["e\u0301 1/3", "e\u0301 2/3", "e\u0301 3/3"]


@pytest.mark.parametrize("text", ["שָׁלוֹם עולם", "عَرَبِيّ مرحبا", "Привет, мир!", "今天天气很好。", "a 🏳️‍🌈 flag"])
def test_no_character_of_any_script_is_lost(byte_tokenizer, text):
    ids, tokens = read(byte_tokenizer, text)
    covered = {place for token in tokens for place in range(token.start, token.end)}
    assert covered >= {place for place, character in enumerate(text) if not character.isspace()}
    assert tokens_of_ids(byte_tokenizer, ids["input_ids"])[1] == [text, None]


def test_ids_alone_give_the_same_tokens_as_the_text_they_came_from(byte_tokenizer):
    text = "She said: don't 🦄. Then\nno."
    ids, tokens = read(byte_tokenizer, text)
    assert tokens_of_ids(byte_tokenizer, ids["input_ids"])[0] == tokens


def test_a_mask_and_an_unknown_word_stand_for_words_and_keep_their_names(piece_tokenizer):
    _, tokens = read(piece_tokenizer, "the [MASK] sat 🦄 on")
    named = {token.text: token for token in tokens}
    assert not named["[MASK]"].special and named["[MASK]"].word == 1
    assert not named["[UNK]"].special and named["[UNK]"].word == 3
    assert named["[CLS]"].special and named["[CLS]"].word is None


def test_accents_that_the_tokenizer_drops_are_still_shown(piece_tokenizer):
    _, tokens = read(piece_tokenizer, "the\u0301 mat")
    assert "".join(token.text for token in tokens if token.word == 0) == "the\u0301"


def test_a_tokenizer_without_offsets_is_read_as_well():
    tokenizer = transformers.ByT5Tokenizer()
    _, tokens = read(tokenizer, "é 🦄")
    assert tokens.texts == ["é 1/2", "é 2/2", "␣", *(f"🦄 {part}/4" for part in range(1, 5)), "</s>"]
    assert [token.word for token in tokens] == [0, 0, None, 1, 1, 1, 1, None]


def test_an_ordinary_token_for_unknown_text_is_told():
    backend = Tokenizer(models.WordLevel({"A": 0, "B": 1}, unk_token="A"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend)
    with pytest.warns(HeadscopeWarning, match="does not know 'x': the model reads 'A'"):
        assert read(tokenizer, "ABx")[1].texts == ["A", "B", "A"]


def test_threads_share_a_tokenizer(piece_tokenizer):
    failed = []

    def work():
        try:
            for turn in range(10):
                cut = 8 if turn % 2 else None
                assert (len(read(piece_tokenizer, SENTENCES[0], max_length=cut)[1]) == 8) == (turn % 2 == 1)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_real_llama_tokenizer_joins_its_bytes(shared_weights):
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        shared_weights / "stories15m-llama-fp16", local_files_only=True
    )
    text = "Tom saw a 🦄. 很好!"
    ids, tokens = read(tokenizer, text)
    assert tokens.texts[:4] == ["<s>", "Tom", "saw", "a"]
    assert [text for text in tokens.texts if "🦄" in text] == [f"🦄 {part}/4" for part in range(1, 5)]
    again, texts = tokens_of_ids(tokenizer, ids["input_ids"])
    assert again == tokens and texts == [text, None]


@pytest.mark.parametrize("text", ["a" + "\u0301" * 20_000, "\U0001f468\u200d" * 10_000, "\U0001f1e6" * 20_000])
def test_what_is_shown_of_a_text_grows_with_the_text_and_not_with_its_square(byte_tokenizer, text):
    fields, tokens = read(byte_tokenizer, text)
    assert len(tokens) == len(fields["input_ids"]) > 20_000
    assert sum(len(token.text) for token in tokens) < 40 * len(tokens)
    assert (tokens[0].start, tokens[-1].end) == (0, len(text))


def test_a_long_character_is_shown_by_its_first_code_points(byte_tokenizer):
    _, tokens = read(byte_tokenizer, "a" + "\u0301" * 30)
    assert tokens[0].text == "a" + "\u0301" * 15 + "… 1/61"


def test_written_characters_are_those_of_unicode():
    signs = [
        "a",
        "\u0301",
        "\U0001f1e6",
        "\U0001f1e7",
        "\u200d",
        "😀",
        "\u0600",
        "\u0903",
        "\u1100",
        "\u1161",
        "\r",
        "\n",
        " ",
    ]
    draw = random.Random(0)
    for _ in range(2_000):
        text = "".join(draw.choices(signs, k=draw.randint(1, 9)))
        assert GRAPHEME.findall(text) == regex.findall(r"\X", text), ascii(text)
