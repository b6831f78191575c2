"""The published use cases from the page: evidence in a dialog, from a row into its head; stopped, or refused."""

from playwright.sync_api import expect

NURSE = "The doctor asked the nurse a question. She"


def start(bench, title: str):
    bench.page.get_by_role("region", name="Use cases").get_by_role("button", name=title).click()
    return bench.page.get_by_role("dialog", name=title)


def test_evidence_is_shown_and_a_row_leads_into_its_head(bench, offline, tmp_path):
    bench.open(text=NURSE)
    dialog = start(bench, "Pronouns and antecedents")
    table = dialog.get_by_role("table", name="Heads, by accuracy")
    expect(table).to_be_visible(timeout=90_000)
    expect(dialog).to_contain_text("The person named last is right in 0.500")
    expect(dialog.get_by_role("table", name="Layers").locator("tbody tr")).to_have_count(6)
    bench.picture("use-case")
    head = table.locator("tbody button").first.inner_text()
    dialog.get_by_role("button", name="Copy as Python").click()
    assert "hs.analysis.antecedents(model)" in bench.page.evaluate("navigator.clipboard.readText()")
    table.locator("tbody button").first.click()
    bench.links_to(view="head", at=head, text="The nurse told the patient that she would finish before dinner.")
    # The result is kept: a second look costs nothing, and it colours the model.
    dialog = start(bench, "Pronouns and antecedents")
    dialog.get_by_role("button", name="Colour all heads by this").click()
    bench.links_to(view=None, colour="antecedent")
    expect(bench.label("antecedent").first).to_be_visible()
    # So it does in a saved page.
    offline.visit(bench.save("HTML", tmp_path).as_uri())
    expect(offline.label("antecedent").first).to_be_visible()


def test_a_use_case_can_be_stopped_and_one_that_does_not_fit_says_why(bench):
    bench.open(text=NURSE)
    dialog = start(bench, "Bias")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_contain_text("It was stopped")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    unfit = bench.page.get_by_role("region", name="Use cases").get_by_role("button", name="Locating heads")
    expect(unfit).to_have_attribute("aria-disabled", "true")
    expect(unfit.get_by_text("needs a model that reads pairs, such as builtin:bert")).to_be_visible()
    expect(unfit).to_have_accessible_description("needs a model that reads pairs, such as builtin:bert")
    unfit.click(force=True)  # it is said to be disabled, and stays one that can be reached
    expect(bench.page.get_by_role("dialog")).to_have_count(0)
