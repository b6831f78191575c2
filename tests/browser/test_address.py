"""The whole state is in the address: links bring it back, the back button undoes it."""

NURSE = "The doctor asked the nurse a question. She"


def test_a_link_brings_back_the_whole_state(bench):
    state = {"view": "head", "at": "L3H2", "heads": "2,5", "filter": "threshold", "threshold": "0.2", "by": "words"}
    bench.open(text=NURSE, **state, hide="first", what="contribution")
    chips = bench.page.get_by_role("group", name="Heads of L3")
    pressed = chips.locator("[aria-pressed=true]").all_text_contents()
    assert pressed == ["L3H2", "L3H5"]
    assert bench.is_chosen("Scale", "Head")
    assert bench.is_chosen("Read by", "Words")
    assert bench.is_chosen("What is drawn", "Contribution")
    assert bench.button("Lines: ≥ 0.20").is_visible()
    assert bench.button("Tokens: no first").is_visible()
    bench.links_to(model="builtin:gpt", text=NURSE, **state, hide="first", what="contribution")


def test_the_back_button_undoes_and_forward_repeats(bench):
    bench.open(text=NURSE)
    bench.choose("Scale", "Head")
    bench.choose("Drawn as", "Matrix")
    bench.links_to(view="head", **{"as": "matrix"})
    bench.page.go_back()
    bench.ready()
    assert bench.is_chosen("Drawn as", "Lines")
    bench.page.go_back()
    bench.ready()
    assert bench.is_chosen("Scale", "Model")
    bench.page.go_forward()
    bench.page.go_forward()
    bench.ready()
    assert bench.is_chosen("Drawn as", "Matrix")


def test_going_back_to_an_earlier_input_shows_its_run(bench):
    bench.open(text="One two three.")
    text = bench.page.get_by_label("Text", exact=True)
    text.fill("Four five six seven.")
    bench.button("Run").click()
    bench.links_to(text="Four five six seven.")
    bench.ready()
    bench.page.go_back()
    bench.links_to(text="One two three.")
    bench.ready()
    assert text.input_value() == "One two three."
    runs = bench.page.get_by_role("region", name="Runs")
    assert runs.get_by_role("button").count() == 2
    assert runs.locator("[aria-current=true]").inner_text().startswith("One two three.")


def test_copy_link_gives_an_address_without_the_token(bench, server):
    bench.open(text=NURSE, view="head", at="L2H1")
    bench.button("Copy link").click()
    copied = bench.page.evaluate("navigator.clipboard.readText()")
    assert copied == bench.page.url
    assert "token" not in copied.replace("tokens", "")


def test_the_printed_address_signs_in_and_drops_its_token(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector('[data-headscope][data-ready="true"]', state="attached")
    assert "token" not in page.url
    assert [cookie["httpOnly"] for cookie in context.cookies()] == [True]
    context.close()


def test_links_that_make_no_sense_still_open(bench):
    bench.open(text=NURSE, view="nonsense", at="L99H99", heads="x,-1,77", filter="?", threshold="NaN", by="letters")
    assert bench.is_chosen("Scale", "Model")
