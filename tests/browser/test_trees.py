"""A sentence that comes with its tree: gold arcs and the head's own, and how well they agree."""

import numpy as np
from playwright.sync_api import expect

import headscope as hs
from headscope.corpora.conllu import parse_conllu
from headscope.views.parts import part

ROWS = (
    ("The", "DET", 2, "det"), ("doctor", "NOUN", 3, "nsubj"), ("asked", "VERB", 0, "root"), ("the", "DET", 5, "det"),
    ("nurse", "NOUN", 3, "iobj"), ("a", "DET", 7, "det"), ("question", "NOUN", 3, "obj"), (".", "PUNCT", 3, "punct"),
)  # fmt: skip
TREE = "\n".join(
    f"{at}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_" for at, (word, tag, head, relation) in enumerate(ROWS, 1)
)


def test_a_pasted_tree_is_drawn_beside_the_head_with_its_own(bench):
    bench.open(model="builtin:bert", text="The doctor asked the nurse a question .", view="head", at="L5H7")
    plain = bench.stage()
    box = bench.page.get_by_label("Text", exact=True)
    box.fill(TREE)
    bench.button("Run").click()
    expect(bench.status).to_contain_text("gold tree")
    for *_, relation in ROWS:
        expect(bench.label(relation).first).to_be_visible()
    assert bench.stage() != plain
    gold = parse_conllu(TREE)[0]
    trace = hs.load("builtin:bert").run(gold.text)
    tree = part(trace, "tree/L5H7?way=A", gold=gold).props
    expect(bench.status).to_contain_text(f"{tree.n_right} of {tree.n_words} words have their head")
    right = {gold.relations[word] for word, is_right in enumerate(tree.agrees) if is_right}
    colours = bench.page.evaluate("""() => Object.fromEntries([...document.querySelectorAll('.view span')]
        .filter(one => !one.hidden).map(one => [one.textContent, one.style.color]))""")
    assert len({colours[relation] for relation in right}) == 1
    assert colours["root"] not in {colours[relation] for relation in right}


def test_which_trees_are_drawn_is_chosen_and_in_the_address(bench):
    bench.open(model="builtin:bert", text=TREE, view="head", at="L5H7")
    expect(bench.status).to_contain_text("its own tree")
    both = bench.stage()
    trees = bench.page.get_by_label("Trees")
    trees.select_option("gold")
    bench.links_to(trees="gold")
    bench.ready()
    expect(bench.status).not_to_contain_text("its own tree")
    assert bench.stage() != both
    trees.select_option("none")
    bench.ready()
    expect(bench.label("nsubj")).to_have_count(0)
    bench.choose("Drawn as", "Matrix")
    without = bench.stage()
    trees.select_option("A+AT")
    bench.ready()
    assert bench.stage() != without


def test_a_saved_page_keeps_its_trees(bench, offline, tmp_path):
    bench.open(model="builtin:bert", text=TREE, view="head", at="L5H7")
    expect(bench.status).to_contain_text("its own tree")
    status = bench.status.inner_text()
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    expect(offline.status).to_have_text(status)


def test_a_tree_that_cannot_be_read_is_named_by_its_line(bench):
    bench.open(model="builtin:bert", text=TREE.replace("\t5\tdet", "\t55\tdet"))
    expect(bench.page.get_by_text("line 4: the head is '55'")).to_be_visible()


def test_long_sentences_and_plain_ones_have_no_choice_of_trees(bench, gpt):
    bench.open(text="She did not know what he meant.", view="head", at="L3H2")
    expect(bench.page.get_by_label("Trees")).to_have_count(0)
    assert np.isfinite(gpt.run("She").pattern("L0H0")).all()
