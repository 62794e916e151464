"""One straight run for each experiment of the tiny project and session."""

from collections.abc import Callable

import pytest
from tests.support.rlhf_sets import SetRun

Straight = Callable[..., SetRun]


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Straight:
    """Returns a function that returns the uninterrupted run of an experiment; each is run once."""
    runs: dict[tuple[str, int, int], SetRun] = {}

    def run(experiment: str = "tiny-ppo", replicas: int = 1, data_workers: int = 1) -> SetRun:
        key = (experiment, replicas, data_workers)
        if key not in runs:
            runs[key] = SetRun(tmp_path_factory.mktemp("straight") / "run", *key)
            assert runs[key].run() == 0, runs[key].log
        return runs[key]

    return run
