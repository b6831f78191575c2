"""The counts of each section, printed at the end."""

from collections.abc import Iterator

import pytest
from hostile.trial import SEED, Section


@pytest.fixture
def section(request: pytest.FixtureRequest, record_property) -> Iterator[Section]:
    """Named as the test; fails with it if there is a problem."""
    section = Section(request.node.name.removeprefix("test_"))
    yield section
    record_property("section", f"{section.name}: {section.summary()}")
    if section.problems:
        pytest.fail(section.message(), pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    lines = [
        f"{value}  ({report.duration:.0f} s)"
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "section" and getattr(report, "when", "") == "teardown"
    ]
    if lines:
        terminalreporter.section(f"hostile trial, seed {SEED}")
        terminalreporter.write_line("\n".join(sorted(set(lines))))
