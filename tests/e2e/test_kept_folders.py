"""Data folders of earlier versions: opened and migrated; what was paused or running is finished; what ended is shown."""

from functools import partial
from pathlib import Path

import pytest
from tests.e2e.test_up import Up
from tests.support import kept_folders
from tests.support.live_cluster import log_in
from tests.support.make_kept_folder import HELD_AT, STEPS
from tests.support.waiting import wait_until

from determined.client import lifecycle
from determined.client.session import Session

pytestmark = pytest.mark.e2e
ENDED, PAUSED, RUNNING = 1, 2, 3
NAMES = sorted(path.name.removesuffix(".tar.zst") for path in kept_folders.KEPT.iterdir())
FIRST_WITH_RETENTION = "2026-11-24"
"""Versions before it deleted nothing when an experiment ended, and later ones do not make up for it."""
ALL_STEPS = list(range(1, STEPS + 1))


def test_the_folder_of_the_first_issue_with_this_test_is_kept():
    assert "2026-11-22" in NAMES


@pytest.mark.parametrize(
    "name", [name if name in (NAMES[0], NAMES[-1]) else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_a_data_folder_of_an_earlier_version_is_opened_migrated_and_finished(name: str, tmp_path: Path):
    up = Up(tmp_path)
    kept_folders.unpack(name, up.data)
    try:
        url = up.start().removeprefix("ready: ").strip()
        with log_in(url, up.data) as session:
            assert states(session) == {ENDED: "COMPLETED", PAUSED: "PAUSED", RUNNING: "ACTIVE"}
            assert_whole(session, up, ENDED)
            assert checkpoints(session, ENDED) == (ALL_STEPS if name < FIRST_WITH_RETENTION else [STEPS])
            assert checkpoints(session, PAUSED) == list(range(1, HELD_AT + 1))
            up.det("experiment", "wait", str(RUNNING))
            lifecycle.steer(session, PAUSED, "activate")
            up.det("experiment", "wait", str(PAUSED))
            for number in (RUNNING, PAUSED):
                assert_whole(session, up, number)
                # The last step is the best and the newest, and the policy keeps no other.
                wait_until(partial(is_kept, session, number, [STEPS]), what="the policy is applied")
                assert f"going on from {HELD_AT}" in log(up, number)
            assert states(session) == dict.fromkeys((ENDED, PAUSED, RUNNING), "COMPLETED")
        assert up.stop() == 0
    finally:
        up.close()


def assert_whole(session: Session, up: Up, number: int) -> None:
    """Every step is there once: its metrics, its checkpoint, its line of output."""
    for group, key in (("training", "avg_metrics"), ("validation", "validation_metrics")):
        reports = [
            report
            for page in session.stream(f"/api/v1/trials/metrics/{group}_metrics", {"trialIds": [number]})
            for report in page["metrics"]
        ]
        assert [report["totalBatches"] for report in reports] == ALL_STEPS
        assert [list(report["metrics"][key].values()) for report in reports] == [[1 / step] for step in ALL_STEPS]
    reported = session.get(f"/api/v1/experiments/{number}/checkpoints")["checkpoints"]
    assert sorted(each["metadata"]["steps_completed"] for each in reported) == ALL_STEPS
    lines = log(up, number)
    assert [lines.count(f"step {step}") for step in ALL_STEPS] == [1] * STEPS


def states(session: Session) -> dict[int, str]:
    listed = session.get("/api/v1/experiments")["experiments"]
    # A running experiment is shown as what its trial does.
    shown = {each["id"]: str(each["state"]).removeprefix("STATE_") for each in listed}
    active = ("QUEUED", "PULLING", "STARTING", "RUNNING")
    return {number: "ACTIVE" if state in active else state for number, state in shown.items()}


def is_kept(session: Session, number: int, steps: list[int]) -> bool:
    return checkpoints(session, number) == steps


def checkpoints(session: Session, number: int) -> list[int]:
    """The steps of its completed checkpoints, each of which has its file."""
    path = f"/api/v1/experiments/{number}/checkpoints"
    found = session.get(path, {"states": ["STATE_COMPLETED"]})["checkpoints"]
    assert all("step" in each["resources"] for each in found)
    return sorted(each["metadata"]["steps_completed"] for each in found)


def log(up: Up, number: int) -> str:
    return up.det("experiment", "logs", str(number)).stdout
