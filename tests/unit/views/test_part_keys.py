"""Keys: what each asks for, and what is said of those that ask for nothing."""

import pytest

from headscope.errors import HeadscopeError
from headscope.views.part_keys import PartKey, parse_key


@pytest.mark.parametrize(
    "key, part_key",
    [
        ("trace", PartKey("trace", size=1024)),
        ("maps?size=24", PartKey("maps", size=24)),
        ("maps", PartKey("maps", size=96)),
        ("scores", PartKey("scores", size=1024)),
        ("layer/L3?what=pattern", PartKey("layer", "L3", size=1024)),
        ("layer/cross.L0?what=scores&hide=", PartKey("layer", "cross.L0", what="scores", size=1024)),
        ("layer/L0?by=words&hide=0,7", PartKey("layer", "L0", by="words", hide=((None, 0), (None, 7)), size=1024)),
        (
            "row/encoder.L1?query=5&hide=encoder:2",
            PartKey("row", "encoder.L1", hide=(("encoder", 2),), index=5, size=1024),
        ),
        ("row/L1?key=0&by=sentences", PartKey("row", "L1", by="sentences", side="key", size=1024)),
        ("window/L3H2?rows=0:5&columns=2:9&size=64", PartKey("window", "L3H2", rows=(0, 5), columns=(2, 9), size=64)),
        ("neuron/L3H2?query=5", PartKey("neuron", "L3H2", query=5, size=1024)),
        ("neuron/cross.L3H2", PartKey("neuron", "cross.L3H2", size=1024)),
        ("vectors/L0H0?of=mixed&rows=5:9", PartKey("vectors", "L0H0", of="mixed", rows=(5, 9), size=1024)),
        ("layer/L0?hide=encoder%3A2", PartKey("layer", "L0", hide=(("encoder", 2),), size=1024)),
    ],
)
def test_keys_are_taken_apart(key, part_key):
    assert parse_key(key) == part_key


@pytest.mark.parametrize(
    "key, error_text",
    [
        ("", "the parts are trace, maps"),
        ("nothing", "there is no part 'nothing'"),
        ("layer", "'layer/L3'"),
        ("trace/L0", "'trace'"),
        ("trace?size=3", "it takes minus"),
        ("maps?size=0", "outside 1 to 96"),
        ("maps?size=97", "outside 1 to 96"),
        ("maps?size=1e3", "not a position"),
        ("window/L0H0?size=4096", "outside 1 to 1024"),
        ("layer/L0?what=mixed", "choose one of pattern, contribution, scores"),
        ("layer/L0?by=letters", "choose one of tokens, words, sentences"),
        ("layer/L0?query=3", "it takes what, by, hide"),
        ("layer/L0?what=pattern&what=scores", "what twice"),
        ("layer/L0?what", "name=value"),
        ("layer/L0?hide=-1", "not a position"),
        ("layer/L0?hide=1,,2", "not a position"),
        ("layer/L0?hide=٣", "not a position"),
        ("row/L0", "a query or a key"),
        ("row/L0?query=1&key=2", "a query or a key"),
        ("row/L0?query=99999999999999", "not a position"),
        ("window/L0H0?rows=5", "no range"),
        ("window/L0H0?rows=5:5", "no range"),
        ("window/L0H0?rows=5:2", "no range"),
        ("layer/L0?hide=" + "1," * 2**20, "at most"),
        ("layer/L0?hide=%ff", "does not read"),
    ],
)
def test_others_are_refused_with_what_there_is(key, error_text):
    with pytest.raises(HeadscopeError, match=error_text) as error:
        parse_key(key)
    assert len(str(error.value)) < 300
