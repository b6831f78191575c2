"""Words, sentences and left-out tokens, on patterns whose answer is known on paper."""

import pytest
import torch

from headscope.errors import InputError, UnknownTokenError
from headscope.traces import Token, Tokens, Trace
from headscope.traces.pattern_reading import Reading

# "playing cards." and a special token in front; "play|ing" is one word.
TOKENS = Tokens(
    (
        Token("<s>", special=True),
        Token("play", 1, word=0, sentence=0, start=0, end=4),
        Token("ing", 2, word=0, sentence=0, start=4, end=7),
        Token("cards", 3, word=1, sentence=0, start=8, end=13),
        Token("Yes", 4, word=2, sentence=1, start=15, end=18),
    )
)
PATTERN = torch.tensor(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.5, 0.5, 0.0, 0.0, 0.0],
        [0.2, 0.4, 0.4, 0.0, 0.0],
        [0.1, 0.2, 0.3, 0.4, 0.0],
        [0.0, 0.1, 0.2, 0.3, 0.4],
    ]
)
TRACE = Trace.from_patterns([PATTERN[None]], TOKENS)


def test_attention_to_a_word_is_the_sum_over_its_pieces_and_from_it_the_mean():
    words = TRACE.words()
    assert words.query_tokens("L0").texts == words.key_tokens("L0").texts == ["<s>", "playing", "cards", "Yes"]
    expected = [[1.0, 0.0, 0.0, 0.0], [0.35, 0.65, 0.0, 0.0], [0.1, 0.5, 0.4, 0.0], [0.0, 0.3, 0.3, 0.4]]
    assert words.pattern("L0H0").tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_sentences_are_read_together():
    sentences = TRACE.sentences()
    assert sentences.query_tokens("L0").texts == ["<s>", "playing cards", "Yes"]
    expected = [[1.0, 0.0, 0.0], [0.8 / 3, 2.2 / 3, 0.0], [0.0, 0.6, 0.4]]
    assert sentences.pattern("L0H0").tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_left_out_tokens_are_gone_as_queries_and_keys_and_rows_are_brought_back_to_one():
    rest = TRACE.without("<s>")
    assert rest.query_tokens("L0").texts == ["play", "ing", "cards", "Yes"]
    expected = [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [2 / 9, 3 / 9, 4 / 9, 0.0], [0.1, 0.2, 0.3, 0.4]]
    assert rest.pattern("L0H0").tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_rows_may_stay_as_they_were():
    assert TRACE.without([0], renormalise=False).pattern("L0H0") == pytest.approx(PATTERN[1:, 1:].numpy())


def test_a_row_with_nothing_left_is_zero():
    # The first query sees only itself; without its key nothing remains of the second's other half.
    rest = TRACE.without(range(1, 5)).pattern("L0H0")
    assert rest.tolist() == [[1.0]]
    assert Trace.from_patterns([torch.eye(2)[None].flip(-1)], ["a", "b"]).without(0).pattern("L0H0").tolist() == [[0.0]]


def test_rows_of_words_without_a_token_sum_to_one():
    both = TRACE.without("<s>").words()
    assert both.query_tokens("L0").texts == ["playing", "cards", "Yes"]
    assert both.pattern("L0H0").sum(-1) == pytest.approx(1.0)
    assert TRACE.words().without("playing").query_tokens("L0").texts == ["<s>", "cards", "Yes"]


def test_rectangles_count_words():
    words = TRACE.words()
    assert words.pattern("L0H0", rows=1, columns=slice(0, 2)).tolist() == [pytest.approx([0.35, 0.65])]
    assert words.thumbnail("L0H0", 2).shape == (2, 2)


def test_leaving_everything_out_is_refused():
    with pytest.raises(InputError, match="none of the 5 tokens"):
        TRACE.without(range(5))
    with pytest.raises(UnknownTokenError, match="no token reads 'dog'"):
        TRACE.without("dog")


def test_words_of_two_segments_are_not_joined():
    # Each text is one word: number 0 in both.
    pair = Tokens(
        (
            Token("hello", word=0, sentence=0),
            Token("[SEP]", special=True),
            Token("world", word=0, sentence=0, segment="B"),
        )
    )
    trace = Trace.from_patterns([torch.eye(3)[None]], pair).without("[SEP]")
    assert trace.words().query_tokens("L0").texts == ["hello", "world"]
    assert trace.sentences().query_tokens("L0").texts == ["hello", "world"]


def test_tokens_without_a_word_stand_alone():
    assert TRACE.sentences().without("Yes").words().query_tokens("L0").texts == ["<s>", "playing cards"]
    numbered = Trace.from_patterns([torch.eye(3)[None]], Tokens.numbered(3))
    assert numbered.words().pattern("L0H0").tolist() == torch.eye(3).tolist()


def test_the_pieces_of_one_character_read_as_the_character():
    pieces = [("caf", 0, 3), ("é 1/2", 3, 4), ("é 2/2", 3, 4), ("s", 4, 5)]
    tokens = Tokens(tuple(Token(text, word=0, start=start, end=end) for text, start, end in pieces))
    merged = Reading.plain(tokens).merge(lambda token: token.word)
    assert merged.tokens.texts == ["cafés"]
    assert (merged.tokens[0].start, merged.tokens[0].end) == (0, 5)
    assert merged.groups == ((0, 1, 2, 3),)


def test_scores_belong_to_the_models_own_tokens():
    with pytest.raises(LookupError, match="before words"):
        TRACE.words().scores("L0H0")


def test_stacks_are_read_each_by_its_own_words():
    cross = torch.tensor([[[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]])
    source = Tokens((Token("un", word=0, start=0, end=2), Token("do", word=0, start=2, end=4), Token("it", word=1)))
    trace = Trace.from_patterns({"cross": [cross]}, {"encoder": source, "decoder": ["a", "b"]})
    assert trace.words().pattern("cross.L0H0").tolist() == [[0.5, 0.5], [1.0, 0.0]]
    # A token is left out where it is found, and it need not be in both.
    assert trace.without("it").pattern("cross.L0H0").tolist() == [[0.5, 0.5], [1.0, 0.0]]


def test_a_piece_left_out_of_a_word_leaves_no_space():
    pieces = Tokens(
        (
            Token("un", word=0, sentence=0, start=0, end=2),
            Token("believ", word=0, sentence=0, start=2, end=8),
            Token("able", word=0, sentence=0, start=8, end=12),
            Token("tale", word=1, sentence=0, start=13, end=17),
        )
    )
    rest = Trace.from_patterns([torch.eye(4)[None]], pieces).without(1)
    assert rest.words().query_tokens("L0").texts == ["unable", "tale"]
    assert rest.sentences().query_tokens("L0").texts == ["unable tale"]
