"""The unmodified command line of 0.38.1 over the life of an experiment."""

import csv
import io
import json
import tarfile
from pathlib import Path

import pytest
from tests.e2e.official import configs
from tests.support.official_cluster import OfficialCluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(90, "starts the official client many times")]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def table(text: str) -> list[dict[str, str]]:
    """Returns the rows of a printed table."""
    head, _rule, *lines = [line for line in text.splitlines() if "|" in line or "+" in line]
    names = [name.strip() for name in head.split("|")]
    return [dict(zip(names, (cell.strip() for cell in line.split("|")), strict=True)) for line in lines]


def test_a_user_logs_in_creates_follows_describes_and_downloads(official: OfficialCluster, tmp_path: Path):
    assert "logged in as user 'admin'" in official.det("user", "whoami")
    created = official.det("experiment", "create", _config(official, "followed", steps=4), configs.SCRIPT, "-f")
    number = int(created.split("Created experiment ")[1].split()[0])
    assert "|| library: " in created
    official.reaches(number, "COMPLETED")
    assert "exit" not in official.det("experiment", "wait", number).lower()

    listed = {row["ID"]: row for row in rows(official.det("experiment", "list", "--csv"))}
    assert (listed[str(number)]["Name"], listed[str(number)]["State"]) == ("followed", "COMPLETED")
    assert (listed[str(number)]["Owner"], listed[str(number)]["Progress"]) == ("admin", "100.0%")

    described = json.loads(official.det("experiment", "describe", number, "--json"))[0]
    assert described["experiment"]["name"] == "followed"
    assert described["experiment"]["state"] == "STATE_COMPLETED"
    assert described["config"]["entrypoint"] == "python3 run.py"
    output = official.det("experiment", "describe", number, "--metrics")
    assert [row["# of Batches"] for row in table(output.split("Workloads:")[1])] == ["1", "2", "3", "4"]
    trial = table(official.det("experiment", "list-trials", number))[0]
    assert (trial["State"], trial["# of Batches"]) == ("COMPLETED", "4")
    assert "COMPLETED" in official.det("trial", "describe", trial["Trial ID"], "--metrics")

    checkpoint = rows(official.det("experiment", "list-checkpoints", number, "--csv"))[0]
    assert (checkpoint["# of Batches"], checkpoint["State"]) == ("4", "COMPLETED")
    assert float(checkpoint["Validation Metric"]) == 0.25
    best = rows(official.det("experiment", "list-checkpoints", number, "--csv", "--best", 1))
    assert [row["UUID"] for row in best] == [checkpoint["UUID"]]
    assert checkpoint["UUID"] in official.det("checkpoint", "describe", checkpoint["UUID"])
    for mode in ("auto", "master"):
        official.det("checkpoint", "download", checkpoint["UUID"], "-o", tmp_path / mode, "--mode", mode)
        assert (tmp_path / mode / "steps").read_text() == "4"
    official.det("experiment", "download", number, "-o", tmp_path / "best", "--top-n", 1)
    assert (tmp_path / "best" / checkpoint["UUID"] / "steps").read_text() == "4"

    official.det("experiment", "download-model-def", number, "--output-dir", tmp_path)
    with tarfile.open(tmp_path / f"experiment_{number}_model_def.tgz") as archive:
        sent = archive.extractfile("run.py")
        assert sent is not None
        assert sent.read() == (configs.SCRIPT / "run.py").read_bytes()


def test_trial_logs_are_printed_in_every_form(official: OfficialCluster):
    number = official.create(configs.script("logs", steps=2), configs.SCRIPT, "-f")
    trial = official.trial(number)
    whole = official.det("trial", "logs", trial["id"]).splitlines()
    assert whole[-1].startswith("Trial log stream ended")
    assert official.det("trial", "logs", trial["id"], "--tail", 2).splitlines()[:2] == whole[-3:-1]
    assert official.det("trial", "logs", trial["id"], "--head", 2).splitlines()[:2] == whole[:2]
    assert official.det("trial", "logs", trial["id"], "-f").splitlines() == whole
    assert official.det("experiment", "logs", number).splitlines()[:-1] == whole[:-1]
    assert official.det("task", "logs", trial["taskId"]).splitlines()[: len(whole) - 1] == whole[:-1]
    warned = official.det("trial", "logs", trial["id"], "--level", "WARNING").splitlines()[:-1]
    assert warned
    assert all("WARNING:" in line or "ERROR:" in line for line in warned)
    first = json.JSONDecoder().raw_decode(official.det("trial", "logs", trial["id"], "--json", "--head", 1))[0]
    assert whole[0] == first["message"].rstrip("\n")


def test_an_experiment_is_paused_activated_canceled_killed_archived_and_deleted(official: OfficialCluster):
    number = official.create(configs.script("steered", steps=configs.ENDLESS, seconds=0.05), configs.SCRIPT)
    official.gets_past(number, 1)
    holder = {row["Task Name"] for row in rows(official.det("slot", "list", "--csv"))}
    assert any(f"(Experiment {number})" in name for name in holder)
    assert f"Experiment {number}" in official.det("task", "list")
    assert "Paused" in official.det("experiment", "pause", number)
    until(lambda: not official.held(number))
    assert {row["State"] for row in rows(official.det("experiment", "list", "--csv")) if row["ID"] == str(number)} == {
        "PAUSED"
    }
    assert {row["Allocation ID"] for row in rows(official.det("slot", "list", "--csv"))} == {"FREE"}
    done = official.steps(number)
    assert "Activated" in official.det("experiment", "activate", number)
    official.gets_past(number, done + 1)
    assert "Canceled" in official.det("experiment", "cancel", number)
    official.reaches(number, "CANCELED")
    official.det("experiment", "wait", number, fails=True)

    killed = official.create(configs.script("killed", steps=configs.ENDLESS, seconds=0.05), configs.SCRIPT)
    official.gets_past(killed, 1)
    assert "Killed" in official.det("experiment", "kill", killed)
    official.reaches(killed, "CANCELED")
    official.det("experiment", "archive", killed)
    assert str(killed) not in {row["ID"] for row in rows(official.det("experiment", "list", "--csv"))}
    assert str(killed) in {row["ID"] for row in rows(official.det("experiment", "list", "--all", "--csv"))}
    official.det("experiment", "unarchive", killed)
    official.det("experiment", "delete", killed, "--yes")
    until(lambda: str(killed) not in {row["ID"] for row in rows(official.det("experiment", "list", "--all", "--csv"))})
    assert "not found" in official.det("experiment", "describe", killed, fails=True).lower()


def test_names_labels_and_descriptions_of_an_experiment_are_set(official: OfficialCluster):
    number = official.create(configs.script("plain"), configs.SCRIPT, "--paused")
    official.det("experiment", "label", "add", number, "green")
    official.det("experiment", "label", "add", number, "blue sky")
    official.det("experiment", "label", "remove", number, "green")
    official.det("experiment", "set", "name", number, "renamed")
    official.det("experiment", "set", "description", number, "as said")
    official.det("experiment", "set", "priority", number, 7)
    experiment = official.experiment(number)
    assert (experiment["labels"], experiment["name"], experiment["description"]) == (["blue sky"], "renamed", "as said")
    assert experiment["config"]["resources"]["priority"] == 7
    assert experiment["state"] == "STATE_PAUSED"
    official.det("experiment", "kill", number)


def test_the_error_of_a_bad_configuration_names_the_key_and_the_line(official: OfficialCluster):
    path = official.folder / "bad.yaml"
    path.write_text(
        "name: bad\nentrypoint: python3 run.py\nsearcher: {name: single, metrik: loss}\nhyperparameters: {}\n"
    )
    output = official.det("experiment", "create", path, configs.SCRIPT, fails=True)
    assert "metrik" in output
    assert 'did you mean "metric"' in output
    assert ":3:" in output


def _config(official: OfficialCluster, name: str, **more: int) -> Path:
    path = official.folder / f"{name}.yaml"
    path.write_text(json.dumps(configs.script(name, **more)))
    return path


OWN_GROUP = """
import determined as det
with det.core.init() as context:
    for step in range(1, 4):
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        context.train.report_metrics("speed", steps_completed=step, metrics={"records": step})
    context.train.report_validation_metrics(steps_completed=3, metrics={"loss": 0.5})
    with context.checkpoint.store_path({"steps_completed": 3}) as (path, _uuid):
        (path / "steps").write_text("3")
    context.train.report_metrics("speed", steps_completed=3, metrics={"last": 1})
"""


def test_metrics_of_own_groups_are_not_workloads_and_the_last_row_has_its_state(
    official: OfficialCluster, tmp_path: Path
):
    (tmp_path / "run.py").write_text(OWN_GROUP)
    number = official.create(configs.script("own-group", steps=3), tmp_path)
    official.reaches(number, "COMPLETED")
    trial = table(official.det("experiment", "list-trials", number))[0]
    described = official.det("trial", "describe", trial["Trial ID"], "--metrics").split("Workloads:")[1]
    assert "records" not in described
    output = table(official.det("experiment", "describe", number, "--metrics").split("Workloads:")[1])
    assert [row["# of Batches"] for row in output] == ["1", "2", "3"]
    assert [output[-1][column] for column in ("State", "Checkpoint State", "Validation State")] == ["COMPLETED"] * 3
