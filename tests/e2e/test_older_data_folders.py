"""Data folders of earlier versions are opened and migrated. Paused and running experiments finish; ended ones are
shown."""

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
"""Earlier versions deleted no checkpoints at the end of an experiment, and later ones do not delete those."""
ALL_STEPS = list(range(1, STEPS + 1))


def test_the_first_archived_data_folder_exists():
    assert "2026-11-22" in NAMES


@pytest.mark.parametrize(
    "name", [name if name == NAMES[0] else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
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
    """Checks that every step has its metrics, its checkpoint and its line of output once."""
    for group, key in (("training", "avg_metrics"), ("validation", "validation_metrics")):
        reports = [
            report
            for page in session.stream(f"/api/v1/trials/metrics/{group}_metrics", {"trialIds": [number]})
            for report in page["metrics"]
        ]
        assert [report["totalBatches"] for report in reports] == ALL_STEPS
        assert [list(report["metrics"][key].values()) for report in reports] == [[1 / step] for step in ALL_STEPS]
    reported = session.get(f"/api/v1/experiments/{number}/checkpoints")["checkpoints"]
    assert sorted(checkpoint["metadata"]["steps_completed"] for checkpoint in reported) == ALL_STEPS
    lines = log(up, number)
    assert [lines.count(f"step {step}") for step in ALL_STEPS] == [1] * STEPS


def states(session: Session) -> dict[int, str]:
    listed = session.get("/api/v1/experiments")["experiments"]
    # The state of a running experiment is that of its trial.
    state_of = {experiment["id"]: str(experiment["state"]).removeprefix("STATE_") for experiment in listed}
    active = ("QUEUED", "PULLING", "STARTING", "RUNNING")
    return {number: "ACTIVE" if state in active else state for number, state in state_of.items()}


def is_kept(session: Session, number: int, steps: list[int]) -> bool:
    return checkpoints(session, number) == steps


def checkpoints(session: Session, number: int) -> list[int]:
    """Returns the steps of the completed checkpoints. Fails unless each has its file."""
    path = f"/api/v1/experiments/{number}/checkpoints"
    rows = session.get(path, {"states": ["STATE_COMPLETED"]})["checkpoints"]
    assert all("step" in row["resources"] for row in rows)
    return sorted(row["metadata"]["steps_completed"] for row in rows)


def log(up: Up, number: int) -> str:
    return up.det("experiment", "logs", str(number)).stdout
