"""What axe-core says of a page: what keeps people out who use it by keyboard, by ear, or with little contrast."""

from typing import Any

from playwright.sync_api import Page


def violations(page: Page, axe: str) -> list[str]:
    """What axe-core calls serious or critical, with the first elements of each."""
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(axe)
    result: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{violation['id']}: {[node['html'][:160] for node in violation['nodes'][:3]]}"
        for violation in result["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def in_both_themes(page: Page, axe: str) -> dict[str, list[str]]:
    problems = {}
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_selector(f"[data-theme={theme}]", state="attached")
        problems[theme] = violations(page, axe)
    return problems
