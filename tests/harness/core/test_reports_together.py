"""Reports that wait together are sent in one request. Each has its own answer."""

import threading

import pytest

from determined import core
from determined.client.session import Session
from determined.core import _metrics
from determined.core._metrics import Shipper
from determined.errors import BadRequest

REFUSED = {"error": {"code": 3, "reason": "InvalidArgument", "error": "other value"}}


@pytest.fixture
def may_answer(master):
    """Yields an event. The first report is answered when it is set, so that all later ones wait together."""
    event = threading.Event()
    master.on("POST", "/metrics", lambda body: (event.wait(60), (200, {}))[1])
    yield event
    event.set()


def report(context, *steps, metrics=None):
    for step in steps:
        context.train.report_training_metrics(step, metrics or {"loss": 1.0})


def report_first(master, context):
    """Reports the first step. Returns when the master has received it."""
    report(context, 1)
    master.wait_for("/metrics")


def steps(master):
    return [body["metrics"]["stepsCompleted"] for body in master.bodies("/metrics")]


def test_waiting_reports_arrive_in_order_in_one_request(master, may_answer):
    with core.init() as context:
        report_first(master, context)
        report(context, 2, 3, 4)
        may_answer.set()
    assert steps(master) == [1, 2, 3, 4]
    assert master.requests_of_several == [3]


def test_a_status_is_sent_in_order_between_waiting_reports(master, may_answer):
    with core.init() as context:
        report_first(master, context)
        report(context, 2, 3)
        context.train.set_status("between")
        report(context, 4, 5)
        may_answer.set()
    posts = [(path, body) for method, path, _, body, _ in master.calls if method == "POST"]
    places = [body["metrics"]["stepsCompleted"] if path.endswith("/metrics") else "status" for path, body in posts]
    assert places == [1, 2, 3, "status", 4, 5]
    assert master.requests_of_several == [2, 2]


def test_a_request_holds_a_bounded_number_of_reports(master, may_answer, monkeypatch):
    monkeypatch.setattr(_metrics, "MAX_REPORTS", 2)
    with core.init() as context:
        report_first(master, context)
        report(context, *range(2, 7))
        may_answer.set()
    assert steps(master) == [1, 2, 3, 4, 5, 6]
    assert master.requests_of_several == [2, 2]


def test_a_request_ends_with_the_report_that_makes_it_large(master, may_answer, monkeypatch):
    monkeypatch.setattr(_metrics, "MAX_BYTES", 2000)
    with core.init() as context:
        report_first(master, context)
        report(context, *range(2, 6), metrics={"text": "x" * 1500})
        may_answer.set()
    assert steps(master) == [1, 2, 3, 4, 5]
    assert master.requests_of_several == [2, 2]


def test_the_refusal_of_one_waiting_report_is_raised_and_the_others_are_stored(master):
    event = threading.Event()

    def answer(body):
        event.wait(60)
        return (400, REFUSED) if body["metrics"]["stepsCompleted"] == 3 else (200, {})

    master.on("POST", "/metrics", answer)
    with core.init() as context:
        report_first(master, context)
        report(context, 2, 3, 4)
        event.set()
        with pytest.raises(BadRequest, match="other value"):
            context.train.flush()
        report(context, 5)
    assert steps(master) == [1, 2, 3, 4, 5]


def test_a_fenced_attempt_ends_its_process_at_the_first_refusal(master):
    event = threading.Event()
    fenced = {"error": {"code": 7, "reason": "PermissionDenied", "error": "fenced"}}
    master.on("POST", "/metrics", lambda body: (event.wait(60), (403, fenced))[1])
    texts = []
    shipper = Shipper(Session(master.url), 3, on_gone=texts.append)
    for step in (1, 2):
        shipper.put({"group": "training", "metrics": {"stepsCompleted": step}})
    event.set()
    shipper.start()
    shipper.close(deliver=False)
    assert master.requests_of_several == [2]
    assert len(texts) == 1
    assert "fenced" in texts[0]


def test_a_master_without_the_batch_path_gets_reports_one_by_one(master):
    master.on("POST", "/reports", (404, {"error": {"code": 5, "reason": "NotFound", "error": "no such path"}}))
    shipper = Shipper(Session(master.url), 3, on_gone=lambda text: pytest.fail(text))
    for step in (1, 2, 3):
        shipper.put({"group": "training", "metrics": {"stepsCompleted": step}})
    shipper.start()
    shipper.close(deliver=True)
    assert steps(master) == [1, 2, 3]


def test_no_report_follows_the_refusal_of_a_fenced_attempt(master):
    fenced = {"error": {"code": 7, "reason": "PermissionDenied", "error": "fenced"}}
    master.on("POST", "/reports", (403, fenced))
    master.on("POST", "/metrics", (403, fenced))
    texts = []
    shipper = Shipper(Session(master.url), 3, on_gone=texts.append)
    for step in (1, 2, 3):
        shipper.put({"group": "training", "metrics": {"stepsCompleted": step}})
    shipper.start()
    shipper.close(deliver=False)
    assert steps(master) == [1]
    assert len(texts) == 1


def test_an_error_that_ends_the_thread_is_raised_by_every_later_call(master, monkeypatch):
    shipper = Shipper(Session(master.url), 3, on_gone=lambda text: pytest.fail(text))
    monkeypatch.setattr(shipper, "_send", lambda items: [][0])
    shipper.put({"group": "training", "metrics": {"stepsCompleted": 1}})
    shipper.start()
    with pytest.raises(IndexError):
        shipper.flush()
    with pytest.raises(IndexError):
        shipper.put({"group": "training", "metrics": {"stepsCompleted": 2}})
    with pytest.raises(IndexError):
        shipper.close(deliver=True)


def test_the_profiler_leaves_the_refusal_of_a_report_to_the_user(master):
    master.on("POST", "/metrics", lambda body: (200, {}) if body["group"] in ("cpu", "memory") else (400, REFUSED))
    with core.init() as context:
        report(context, 1)
        master.wait_for("/metrics")
        context.profiler.on(sampling_interval=0.1, samples_per_report=1)
        master.wait_for("/metrics", 3)
        context.profiler.off()
        with pytest.raises(BadRequest, match="other value"):
            context.train.flush()
