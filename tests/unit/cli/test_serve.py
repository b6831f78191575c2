"""The command line of the workbench; the server itself is tested under tests/unit/server."""

import sys
from pathlib import Path
from typing import Any

import pytest

import headscope.server.run_server
from headscope.cli.serve import bytes_of
from headscope.errors import InputError
from headscope.server.corpus_sentences import samples_of
from headscope.server.options import Options


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Options, dict[str, Any]]]:
    """What the server would have been started with."""
    launches: list[tuple[Options, dict[str, Any]]] = []

    def serve(options: Options, *, say: Any, announce: Any, **more: Any) -> None:
        say("a note")
        announce("http://127.0.0.1:1/?token=t")
        launches.append((options, more))

    monkeypatch.setattr(headscope.server.run_server, "serve", serve)
    return launches


def test_headscope_alone_opens_the_workbench(call, launches) -> None:
    result = call()
    assert result.exit_code == 0
    assert result.stdout == "Headscope is at http://127.0.0.1:1/?token=t\nCtrl-C stops it.\n"
    options, more = launches[0]
    assert options == Options() and more == {"opens_browser": True, "debug": False}
    assert options.host == "127.0.0.1" and not options.allow_hub and options.allow == ()


def test_every_option_reaches_the_server(call, launches, tmp_path: Path) -> None:
    arguments = ["serve", "a", "b", "--port", 0, "--host", "0.0.0.0", "--allow-hub", "--allow", tmp_path]
    arguments += ["--trust-host", "lab", "--no-browser", "--max-memory", "1.5GB", "--queue", 3, "--debug"]
    assert call(*arguments).exit_code == 0
    options, more = launches[0]
    assert options.models == ("a", "b") and options.port == 0 and options.host == "0.0.0.0" and options.allow_hub
    assert options.allow == (tmp_path,) and options.trusted_hosts == ("lab",)
    assert options.limits.memory == 1_500_000_000 and options.limits.waiting == 3
    assert more == {"opens_browser": False, "debug": True}


def test_columns_of_the_corpus_reach_the_server(call, launches, refusal, tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("title\tbody\nmy cat\tthe cat sat on the mat\n")
    assert call("serve", "--corpus", table, "--columns", "text=body", "--no-browser").exit_code == 0
    options, _ = launches[0]
    assert [sample.text for sample in samples_of(options.corpus)] == ["the cat sat on the mat"]
    assert options.corpus is not None and options.corpus.name == "table.tsv"
    assert "add --corpus FILE" in refusal("serve", "--columns", "text=body", "--no-browser")


def test_json_is_the_address_alone(call, launches) -> None:
    result = call("serve", "--json")
    assert result.stdout == '{\n "address": "http://127.0.0.1:1/?token=t"\n}\n' and "a note" in result.stderr


def test_sizes_are_read_as_people_write_them() -> None:
    assert [bytes_of(size) for size in ("500MB", "4GB", "1.5g", "2000000", "3 mb")] == [
        500_000_000, 4_000_000_000, 1_500_000_000, 2_000_000, 3_000_000,
    ]  # fmt: skip
    for wrong in ("", "lots", "-1GB", "1KB", "GB", "1.2.3GB"):
        with pytest.raises(InputError, match="not a memory size"):
            bytes_of(wrong)


def test_a_missing_page_is_a_user_error(refusal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADSCOPE_STATIC", str(tmp_path))
    assert "scripts/web" in refusal("serve", "--no-browser")


def test_a_missing_package_names_the_extra(refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "headscope.server.run_server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'headscope[serve]'" in refusal("serve", "--no-browser")
