"""Commands that follow something across a restart of the master: one note, and every line once."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.restarting_master import RestartingMaster, RestartWhenReportedLost, restarting

from determined.client import auth_store
from determined.client.session import ONCE, Session
from determined.errors import MasterUnreachable
from determined_cli.main import main
from determined_cli.reconnect import Reconnector

LOST = "lost; waiting for the master"


@pytest.fixture
def master(home: Path) -> Iterator[RestartingMaster]:
    with restarting() as cluster:
        auth_store.remember(cluster.url, "ann", "T")
        auth_store.set_default_master(cluster.url)
        cluster.answers["GET /api/v1/experiments/7/trials"] = lambda: {
            "trials": [{"id": 9}],
            "pagination": {"total": 1},
        }
        yield cluster


@pytest.fixture
def err(master: RestartingMaster) -> RestartWhenReportedLost:
    return RestartWhenReportedLost(master)


def det(err: RestartWhenReportedLost, *words: str) -> int:
    with contextlib.redirect_stderr(err):
        return main(words)


def entry(number: int) -> dict[str, Any]:
    return {"id": str(number), "message": f"line {number}\n"}


def stopping_after(master: RestartingMaster, answer: Any) -> Callable[[], Any]:
    """Returns a function that stops the master before its first answer."""

    def stop_and_answer() -> Any:
        master.stop()
        return answer

    return stop_and_answer


def log_of_two_lives(master: RestartingMaster) -> Callable[[], Iterator[dict[str, Any]]]:
    """Returns a log: three lines before the master stops, and all five after its restart."""

    def lines() -> Iterator[dict[str, Any]]:
        if master.lives > 1:
            yield from map(entry, range(1, 6))
            return
        yield from map(entry, range(1, 4))
        master.stop()

    return lines


def state_by_life(master: RestartingMaster) -> str:
    return "STATE_ACTIVE" if master.lives == 1 else "STATE_COMPLETED"


@pytest.mark.parametrize("cuts", [False, True], ids=["stream ends", "stream breaks inside a line"])
@pytest.mark.parametrize("words", [("t", "logs", "9", "-f"), ("e", "logs", "7", "-f")])
def test_followed_logs_continue_after_a_restart_without_repeated_lines(
    master: RestartingMaster,
    err: RestartWhenReportedLost,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    cuts: bool,
) -> None:
    master.cuts = cuts
    master.answers["GET /api/v1/trials/9/logs"] = log_of_two_lives(master)
    master.answers["GET /api/v1/trials/9"] = lambda: {"trial": {"id": 9, "state": state_by_life(master)}}
    assert det(err, *words) == 0
    assert capsys.readouterr().out == "".join(f"line {number}\n" for number in range(1, 6))
    assert err.getvalue().count(LOST) == 1


def test_a_log_stream_that_ends_before_its_trial_is_reopened(
    master: RestartingMaster, err: RestartWhenReportedLost, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = iter([2, 3])
    states = iter(["STATE_ACTIVE", "STATE_ACTIVE", "STATE_COMPLETED"])
    master.answers["GET /api/v1/trials/9/logs"] = lambda: iter([entry(n) for n in range(1, next(lengths) + 1)])
    master.answers["GET /api/v1/trials/9"] = lambda: {"trial": {"id": 9, "state": next(states)}}
    assert det(err, "t", "logs", "9", "-f") == 0
    assert capsys.readouterr().out == "line 1\nline 2\nline 3\n"
    assert err.getvalue() == ""


def test_the_rest_of_a_log_is_fetched_if_the_trial_ended_during_the_outage(
    master: RestartingMaster, err: RestartWhenReportedLost, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream ends properly. Only the request for the trial's state meets the outage."""
    master.answers["GET /api/v1/trials/9/logs"] = log_of_two_lives(master)
    master.answers["GET /api/v1/trials/9"] = lambda: {"trial": {"id": 9, "state": "STATE_COMPLETED"}}
    assert det(err, "t", "logs", "9", "-f") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "line 5"


def test_wait_continues_after_a_restart_of_the_master(master: RestartingMaster, err: RestartWhenReportedLost) -> None:
    active, ended = ({"experiment": {"id": 7, "state": f"STATE_{state}"}} for state in ("ACTIVE", "COMPLETED"))
    first = stopping_after(master, active)
    master.answers["GET /api/v1/experiments/7"] = lambda: first() if master.lives == 1 else ended
    assert det(err, "e", "wait", "7", "--polling-interval", "0.01") == 0
    assert err.getvalue().count(LOST) == 1
    assert err.getvalue().splitlines()[-1] == "experiment 7 ended: COMPLETED"


def test_create_with_follow_continues_after_a_restart_of_the_master(
    master: RestartingMaster, err: RestartWhenReportedLost, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ctx").mkdir()
    (tmp_path / "ctx" / "train.py").touch()
    config = tmp_path / "exp.yaml"
    config.write_text("name: x\nentrypoint: 'true'\nsearcher: {name: single, metric: loss, max_length: {batches: 1}}\n")
    master.answers |= {
        "HEAD /detent/contexts/{}": dict,
        "POST /api/v1/experiments": lambda: {"experiment": {"id": 7}},
        "GET /api/v1/trials/9/logs": log_of_two_lives(master),
        "GET /api/v1/trials/9": lambda: {"trial": {"id": 9, "state": state_by_life(master)}},
        "GET /api/v1/experiments/7": lambda: {"experiment": {"id": 7, "state": state_by_life(master)}},
        "GET /detent/trials/9/progress": lambda: {"state": state_by_life(master)},
    }
    assert det(err, "e", "create", str(config), str(tmp_path / "ctx"), "-f") == 0
    lines = "".join(f"line {number}\n" for number in range(1, 6))
    assert capsys.readouterr().out == f"Created experiment 7\n{lines}"
    assert err.getvalue().count(LOST) == 1


def test_following_a_master_that_never_answered_exits_with_6(
    master: RestartingMaster, capsys: pytest.CaptureFixture[str]
) -> None:
    master.stop()
    assert main(["e", "wait", "7"]) == 6
    assert main(["t", "logs", "9", "-f"]) == 6
    assert LOST not in capsys.readouterr().err


def test_wait_observes_its_timeout_during_an_outage(
    master: RestartingMaster, capsys: pytest.CaptureFixture[str]
) -> None:
    active = {"experiment": {"id": 7, "state": "STATE_ACTIVE"}}
    master.answers["GET /api/v1/experiments/7"] = stopping_after(master, active)
    assert main(["e", "wait", "7", "--polling-interval", "0.01", "--timeout", "0.5"]) == 8
    assert "has not ended after 0.5 s" in capsys.readouterr().err


def test_the_reconnector_reports_each_outage_once_and_stops_after_its_limit() -> None:
    notes: list[str] = []
    seconds = [0.0]

    def sleep(length: float) -> None:
        seconds[0] += length

    reconnector = Reconnector(
        Session("http://127.0.0.1:1", retry=ONCE),
        tell=notes.append,
        give_up_after=120.0,
        sleep=sleep,
        clock=lambda: seconds[0],
    )
    calls = iter([True, False, False, True])

    def unavailable_twice() -> str:
        if not next(calls, False):
            raise MasterUnreachable("refused")
        return "here"

    assert reconnector.call(unavailable_twice) == "here"
    assert reconnector.call(unavailable_twice) == "here"
    assert len(notes) == 1
    with pytest.raises(MasterUnreachable, match="refused; gave up after 2 minutes"):
        reconnector.call(unavailable_twice)
    assert len(notes) == 2
    assert 120.0 <= seconds[0] < 125.0
