"""The unmodified SDK of 0.38.1 on its whole path, and what its trials' own library reports."""

import json
import math

import pytest
from tests.e2e.official import configs
from tests.support.official_cluster import OFFICIAL, OfficialCluster

pytestmark = [pytest.mark.e2e, pytest.mark.official]
SDK = configs.CONTEXTS.parent / "sdk"


def test_the_sdk_creates_waits_reads_and_downloads(official: OfficialCluster):
    config = json.dumps(configs.script("by-sdk", steps=6))
    told = official.python(SDK / "whole_path.py", configs.SCRIPT, config)
    assert told["state"] == told["again"] == "COMPLETED"
    assert told["trial"] == ["COMPLETED", {"steps": 6, "seconds": 0.0}, told["experiment"]]
    assert told["experiment"] in told["listed"] or told["archived"]
    assert told["archived"] is True
    assert told["labels"] == ["seen"]
    assert told["description"] == "by the SDK"
    assert told["checkpoints"] == told["of_trial"] == [told["top"]]
    assert told["metadata"] == {"steps_completed": 6, "why": "end"}
    assert told["steps"] == ["6", "6"]
    assert told["me"] == "admin"
    assert {"admin", "determined"} <= set(told["users"])
    assert told["workspaces"] == ["Uncategorized"]
    assert f"library: {OFFICIAL}/lib/" in told["logs"][-1]
    assert told["metrics"]["training"] == [reported(step) for step in range(1, 7)]
    assert told["metrics"]["validation"] == [{"loss": 1 / 6, "odd": "NaN"}]
    assert math.isnan(float(told["metrics"]["validation"][0]["odd"]))


def reported(step: int) -> dict[str, object]:
    """What the script reports; the SDK hands out what JSON cannot carry as the words of the wire."""
    return {"loss": 1 / step, "odd": ("NaN", "Infinity", "-Infinity")[step % 3], "word": "so"}
