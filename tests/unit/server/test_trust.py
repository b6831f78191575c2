"""The quick set as a task: the verdicts of Python, for a head and for all; in saved pages; refused in words."""

import base64
import gzip
import json
import re
import threading
from typing import Any

import pytest
import tiny_models
from starlette.testclient import TestClient

from headscope import faithfulness
from headscope.server.tasks.trust import join_badges
from headscope.views.contract import BadgeProps, TrustProps
from headscope.views.wire import Part, decode

TEXT = "the cat sat on the mat"


def ask_trust(client: TestClient, trace: str, **options: Any) -> list[dict]:
    """The events of the task."""
    answer = client.post("/api/tasks", json={"name": "trust", "trace": trace, "options": options})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def result(client: TestClient, events: list[dict]) -> dict[str, Any]:
    """The part of a finished task."""
    assert events[-1]["state"] == "done", events[-1]
    return decode(client.get(f"/api/results/{events[-1]['result']}").content).props


def badges_of_page(page: str) -> dict[str, dict]:
    """The badges that a saved page holds, by head."""
    packed = re.findall(r'data-key="trust">([^<]+)<', page)
    parts = [decode(gzip.decompress(base64.b64decode(text))) for text in packed]
    return {badge["head"]: badge for part in parts for badge in part.props["badges"]}


def python_badges(client: TestClient, trace: str, head: str | None = None) -> list[dict]:
    workbench = client.workbench  # type: ignore[attr-defined]
    run = workbench.runs.find(trace)
    model = workbench.catalogue.load(run.request.model)
    badges = faithfulness.quick_check(model, run.trace, head, interventions=run.interventions)
    return [{key: value for key, value in badge.to_json().items() if key != "answer"} for badge in badges.values()]


@pytest.mark.parametrize("head", ["", "L1H0"])
def test_badges_are_those_of_python(client: TestClient, run, head: str) -> None:
    trace = run(client, TEXT)[-1]["trace"]
    events = ask_trust(client, trace, head=head)
    props = result(client, events)
    assert props["badges"] == python_badges(client, trace, head or None)
    assert props["same_output"] == 0.05 and props["n_permutations"] == 10 and " %) at token " in props["answer"]
    n_heads = len(client.workbench.runs.find(trace).trace.heads)  # type: ignore[attr-defined]
    assert events[-2]["done"] == events[-2]["of"] == len(props["badges"]) == (1 if head else n_heads)


def test_an_edited_run_has_badges_of_its_own(client: TestClient, run) -> None:
    plain, edited = (run(client, TEXT, edits=edits)[-1]["trace"] for edits in ([], ["silence('L0H0')"]))
    first, second = (result(client, ask_trust(client, trace)) for trace in (plain, edited))
    assert second["badges"] == python_badges(client, edited)
    assert second != first
    # The output of a silenced head is zero, whatever its pattern.
    silenced = next(badge for badge in second["badges"] if badge["head"] == "L0H0")
    assert silenced["verdict"] == "not supported"
    assert silenced["figures"]["change_uniform"] == pytest.approx(0, abs=1e-5)


def test_a_saved_page_holds_the_badges_of_all_tests_of_its_run(client: TestClient, run) -> None:
    trace, other = run(client, TEXT)[-1]["trace"], run(client, TEXT, edits=["silence('L0H0')"])[-1]["trace"]
    wanted = {"view": "model", "selection": {"site": "L0"}}

    def saved_badges(**more: str) -> dict[str, dict]:
        page = client.post(f"/api/traces/{trace}/page", json=wanted | more)
        assert page.status_code == 200, page.text
        return badges_of_page(page.text)

    assert saved_badges() == {}
    for head in ("L0H1", "L1H0"):
        ask_trust(client, trace, head=head)
    ask_trust(client, other)
    saved = saved_badges()
    assert list(saved) == ["L0H1", "L1H0"]
    assert list(saved.values()) == [python_badges(client, trace, head)[0] for head in saved]
    # A difference of two runs has no answer of its own.
    assert saved_badges(minus=other) == {}


def test_the_last_test_of_a_head_counts() -> None:
    def part(*badges: BadgeProps) -> Part:
        return decode(Part("trust", TrustProps("'cat' (9 %) at token 2", 0.05, 10, list(badges))).encode())

    first = part(BadgeProps("L0H0", "mixed", "a", {}), BadgeProps("L0H1", "mixed", "b", {}))
    joined = join_badges([first, part(BadgeProps("L0H0", "not supported", "c", {}))])
    assert [(badge["head"], badge["sentence"]) for badge in joined.props["badges"]] == [("L0H0", "c"), ("L0H1", "b")]
    assert joined.props["answer"] == "'cat' (9 %) at token 2"


@pytest.mark.parametrize(
    ("text", "head", "error_text"), [("cat", "", "fewer than 3 tokens"), (TEXT, "L9H9", "L9H9")], ids=["short", "head"]
)
def test_what_cannot_be_tested_is_said(client: TestClient, run, text: str, head: str, error_text: str) -> None:
    last = ask_trust(client, run(client, text)[-1]["trace"], head=head)[-1]
    assert last["state"] == "failed" and error_text in last["message"]


def test_an_encoder_decoder_is_refused_with_its_reason(start, run, tmp_path) -> None:
    tiny_models.FAMILIES["t5"].build().save_pretrained(tmp_path)  # type: ignore[operator]
    tiny_models.tiny_tokenizer().save_pretrained(tmp_path)
    client = start(models=(str(tmp_path),))
    last = ask_trust(client, run(client, TEXT, target="the cat")[-1]["trace"])[-1]
    assert last["state"] == "failed" and "encoder-decoder" in last["message"], last


def test_a_test_can_be_stopped(client: TestClient, run, monkeypatch) -> None:
    from headscope.server.tasks import trust

    begun, check = threading.Event(), trust.quick_check

    def slow_check(*args: Any, cancel: threading.Event, **options: Any) -> Any:
        begun.set()
        assert cancel.wait(10)
        return check(*args, cancel=cancel, **options)

    monkeypatch.setattr(trust, "quick_check", slow_check)
    trace = run(client, TEXT)[-1]["trace"]
    jobs = client.workbench.jobs  # type: ignore[attr-defined]
    stopper = threading.Thread(target=lambda: (begun.wait(10), jobs._running.cancel.set()))
    stopper.start()
    assert ask_trust(client, trace)[-1]["state"] == "cancelled"
    stopper.join()


def test_more_memory_than_the_server_may_use_is_refused_beforehand(start, run) -> None:
    client = start(limits={"memory": 60_000_000})
    trace = run(client, TEXT)[-1]["trace"]
    assert ask_trust(client, trace)[-1]["state"] == "done"
    long = run(client, " ".join([TEXT] * 30))[-1]["trace"]
    last = ask_trust(client, long)[-1]
    assert last["state"] == "failed" and last["error"] == "TooLarge"
