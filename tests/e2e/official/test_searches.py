"""The unmodified official client steers searches and continues ended experiments."""

import pytest
from tests.e2e.official.configs import SCRIPT, script
from tests.e2e.official.test_cli import rows
from tests.support.official_cluster import OfficialCluster, until

pytestmark = pytest.mark.budget(60, "runs searches by the official client")

SEARCHER = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 2}


def test_an_ended_experiment_is_continued_with_other_settings(official: OfficialCluster):
    number = official.create(script("continued", steps=2), SCRIPT, "-f")
    official.reaches(number, "COMPLETED")
    override = official.folder / "longer.yaml"
    override.write_text("hyperparameters: {steps: 4}\n")
    output = official.det("experiment", "continue", number, "--config-file", override, "--config", "name=longer", "-f")
    assert "resumed at 2" in output
    official.reaches(number, "COMPLETED")
    assert (official.steps(number), official.experiment(number)["name"]) == (4, "longer")
    refused = official.det("experiment", "continue", number, "--config", "searcher.metric=other", fails=True)
    assert "cannot change when an experiment is continued" in refused


@pytest.mark.long  # the test above continues an experiment
def test_a_search_is_canceled_continued_and_changed(official: OfficialCluster):
    config = script("search", steps=100_000, seconds=0.02, searcher=SEARCHER)
    number = official.create(config, SCRIPT)
    official.gets_past(number, 3)
    for setting, value in (("max-slots", 1), ("weight", 2.5), ("priority", 50)):
        official.det("experiment", "set", setting, number, value)
    (job,) = rows(official.det("job", "list", "--csv"))
    assert job["ID"] == official.experiment(number)["jobId"]
    assert (job["Priority"], official.experiment(number)["config"]["resources"]["max_slots"]) == ("50", 1)
    official.det("experiment", "kill", number)
    official.reaches(number, "CANCELED")
    official.det("experiment", "set", "gc-policy", number, "--yes", *_policy(1, 0, 0))
    official.det("experiment", "continue", number)
    until(lambda: official.experiment(number)["state"] == "STATE_RUNNING")
    trials = official.api.get(f"/api/v1/experiments/{number}/trials")["trials"]
    assert len(trials) == 2
    official.det("experiment", "kill", number)
    official.reaches(number, "CANCELED")


def _policy(best: int, trial_best: int, latest: int) -> list[object]:
    return [
        "--save-experiment-best",
        best,
        "--save-trial-best",
        trial_best,
        "--save-trial-latest",
        latest,
    ]
