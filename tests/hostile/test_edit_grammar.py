"""Texts that look like edits: each is an edit, which is read the same again, or is refused in words; nothing is run."""

import random
from pathlib import Path

from hostile.trial import SEED, Section, size

from headscope.errors import HeadscopeError
from headscope.interventions import calls_in, canonical, parse, save_interventions, scale, silence

NAMES = [
    "silence", "scale", "block", "uniform", "temperature", "set_weight", "set_row", "set_neuron", "scale_neuron",
    "replace_token", "patch", "mean_ablate", "replace_pattern", "hs.silence", "__import__", "eval", "print", "x.y.z",
    "",
]  # fmt: skip
LITERALS = [
    "'L0H0'", "'L0'", "'encoder.L1H2'", "None", "True", "0", "-1", "3", "1e999", "1e-320", "nan", "0.5", "10**9",
    "'key'",
    "'mlp'", "[0, 1]", "[]", "(1,)", "{}", "{'a': 1}", "range(0, 3)", "range(0, 10**12)", "range(1, 9, 0)", "'\\0'",
    "b'x'", "...", "'the'", "'box:0,0,9,9'", "9" * 5000, "1j", "-'a'", "*[1]", "**{}", "lambda: 1",
    "open('/etc/passwd')",
    "model.run('the dog')", "model.run('x', image='/etc/passwd')", "f'{1}'", "(yield)", "[1 for _ in (1,)]", "x := 3",
]  # fmt: skip
EDITS = [
    "silence('L0H0')", "scale('L0H1', 0.5)", "block('L1H0', [3], range(0, 2))", "uniform(None, tokens=[2])",
    "set_weight('L0H0', 4, 0, 0.5)", "set_neuron('L0', 'mlp', 1, 2.0)", "replace_token(0, 'no')",
    "patch('L0H1', model.run('the dog sat on the mat'))", "temperature('L1H0', 1)", "set_row('L0H0', 0, [0.5, 0.5])",
]  # fmt: skip
KEYWORDS = ["", "", "", "tokens=", "factor=", "query=", "key=", "head=", "é=", "self=", "__class__="]


def call(chance: random.Random, depth: int = 0) -> str:
    """Something like a call of an edit."""
    arguments = [
        chance.choice(KEYWORDS) + (call(chance, depth + 1) if depth < 3 and chance.random() < 0.1 else value)
        for value in chance.choices(LITERALS, k=chance.randrange(5))
    ]
    return f"{chance.choice(NAMES)}({', '.join(arguments)})"


def mutated(text: str, chance: random.Random) -> str:
    """The same with some characters changed, put in or left out."""
    characters = list(text)
    for _ in range(chance.choice([0, 0, 1, 3])):
        place = chance.randrange(len(characters) + 1)
        characters[place : place + chance.randrange(2)] = chance.choice("()[]{},='\"\\\0\n\té#:*-L09. ")
    return "".join(characters)


def test_edit_grammar(section: Section) -> None:
    chance = random.Random(SEED)
    cases = [data.decode() for data in section.cases()]
    drawn_texts = (chance.choice([*EDITS, call(chance)]) for _ in range(size(5_000, 300_000)))
    for text in (*cases, *(mutated(text, chance) for text in drawn_texts)):
        try:
            plain = canonical(text)
            parse(text, lambda run: None)  # type: ignore[arg-type, return-value]
            if canonical(plain) != plain:
                section.problem(f"{text!r} is {plain!r}, which is {canonical(plain)!r}", text.encode())
        except HeadscopeError as error:
            section.outcomes["refused"] += 1
            if len(str(error)) < 15:
                section.problem(f"{text!r}: says only {str(error)!r}", text.encode())
        except Exception as error:
            section.problem(f"{text!r}: {type(error).__name__}: {error}", text.encode())
        else:
            section.outcomes["an edit"] += 1


def test_edit_files(section: Section, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    whole = save_interventions([silence("L0H0"), scale("L0H1", 0.5, tokens=[1])], tmp_path / "edits.json").read_text()
    cases = [data.decode() for data in section.cases()]
    for text in (*cases, *(mutated(whole, chance) for _ in range(size(1_000, 50_000)))):
        try:
            calls_in(text)
        except HeadscopeError:
            section.outcomes["refused"] += 1
        except Exception as error:
            section.problem(f"{type(error).__name__}: {error}", text.encode())
        else:
            section.outcomes["read"] += 1
