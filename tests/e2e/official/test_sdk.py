"""The unmodified SDK of 0.38.1 and ours run the same scripts and read the same reports."""

import json
import math
import sys
from pathlib import Path

import pytest
from tests.e2e.official import configs
from tests.support.official_client import OFFICIAL
from tests.support.official_cluster import OfficialCluster

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(60, "runs the official client's scripts")]
SDK = configs.CONTEXTS.parent / "sdk"


PYTHONS = {"official": OFFICIAL / "bin" / "python", "ours": Path(sys.executable)}


@pytest.mark.parametrize("library", PYTHONS)
def test_the_sdk_creates_waits_reads_and_downloads(official: OfficialCluster, library: str):
    config = json.dumps(configs.script("by-sdk", steps=6))
    answer = official.python(SDK / "whole_path.py", configs.SCRIPT, config, python=PYTHONS[library])
    assert answer["state"] == answer["again"] == "COMPLETED"
    assert answer["trial"] == ["COMPLETED", {"steps": 6, "seconds": 0.0}, answer["experiment"]]
    assert answer["experiment"] in answer["listed"]
    assert answer["archived"] is True
    assert answer["labels"] == ["seen"]
    assert answer["description"] == "by the SDK"
    assert answer["checkpoints"] == answer["of_trial"] == [answer["top"]]
    assert answer["metadata"] == {"steps_completed": 6, "why": "end"}
    assert answer["steps"] == ["6", "6"]
    assert answer["me"] == "admin"
    assert {"admin", "determined"} <= set(answer["users"])
    assert answer["workspaces"] == ["Uncategorized"]
    assert f"library: {OFFICIAL}/lib/" in answer["logs"][-1]
    assert [words(report) for report in answer["metrics"]["training"]] == [
        words(reported(step)) for step in range(1, 7)
    ]
    assert [words(report) for report in answer["metrics"]["validation"]] == [{"loss": 1 / 6, "odd": "nan"}]
    kind = str if library == "official" else float
    assert isinstance(answer["metrics"]["validation"][0]["odd"], kind)
    assert math.isnan(float(answer["metrics"]["validation"][0]["odd"]))


def words(metrics: dict[str, object]) -> dict[str, object]:
    """Returns the metrics with ``odd`` as a word. For values that JSON lacks, the official SDK returns words, ours
    floats."""
    return {**metrics, "odd": str(float(str(metrics["odd"])))}


def reported(step: int) -> dict[str, object]:
    """Returns the report of the script for a step, in the words of the API."""
    return {"loss": 1 / step, "odd": ("NaN", "Infinity", "-Infinity")[step % 3], "word": "so"}


@pytest.mark.parametrize("library", ["official", pytest.param("ours", marks=pytest.mark.long)])
def test_the_sdk_steers_an_experiment_and_reads_the_cluster(official: OfficialCluster, library: str):
    config = json.dumps(configs.script("steered-by-sdk", steps=configs.ENDLESS, seconds=0.05))
    name = f"sdk-{library}"
    answer = official.python(SDK / "steering.py", configs.SCRIPT, config, name, python=PYTHONS[library])
    assert answer == {
        "paused": True,
        "ended": True,
        "trial": ["CANCELED"],
        "killed": True,
        "name": "steered",
        "labels": ["a"],
        "stored": True,
        "training": True,
        "user": [f"{name} of the SDK", name],
        "me": "admin",
        "places": ["Uncategorized", "Uncategorized"],
        "reports": [True, True],
        "first": [True, 1, "training"],
        "newest first": True,
        "missing": True,
    }


def test_a_task_reads_with_its_own_token_and_drives_the_cluster_as_a_user(official: OfficialCluster):
    environment = {"environment_variables": [f"PASSWORD_OF_ADMIN={official.password}"]}
    config = configs.script("parent", official=False) | {"hyperparameters": {}, "environment": environment}
    parent = official.create(config, configs.CONTEXTS / "sdk_in_task")
    official.reaches(parent, "COMPLETED")
    log = official.logs(parent)
    assert "runs for admin" in log
    assert "refused: a task token may write only to its own trial; this requires a user's login" in log
    assert f"created {parent + 1}" in log
    assert "the child ended as COMPLETED" in log
    assert official.experiment(parent + 1)["name"] == "child"
