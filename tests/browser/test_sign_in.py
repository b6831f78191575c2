"""A visitor whom the server does not know gets a box for the token, and keeps the view of the link."""

from playwright.sync_api import Browser, expect

from browser.server import Server
from browser.workbench import Workbench

TEXT = "The doctor asked the nurse a question. She"


def test_a_stranger_with_a_link_signs_in_and_sees_it(browser: Browser, server: Server, bench: Workbench) -> None:
    bench.open(text=TEXT, at="L3H2")
    link = bench.page.url
    context = browser.new_context(viewport={"width": 1440, "height": 860})
    try:
        page = context.new_page()
        page.goto(link)
        box = page.get_by_label("Token, or the address that the terminal shows")
        expect(page.get_by_role("heading", name="This browser is not signed in.")).to_be_visible()
        box.fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("This is not the token of this server.")).to_be_visible()
        box.fill(server.url)
        box.press("Enter")
        expect(page.get_by_role("heading", name="L3H2", exact=True)).to_be_visible()
        assert page.url == link
    finally:
        context.close()
