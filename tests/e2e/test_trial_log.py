"""A trial's own log on a cluster: reported metrics, the missing searcher metric, and the commands that read them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_up import Up

pytestmark = pytest.mark.e2e

SCRIPT = """
import determined as det
with det.core.init() as core:
    for step in range(1, 301):
        core.train.report_training_metrics(step, {"loss": 1.0 / step})
    core.train.report_validation_metrics(300, {"acuracy": 0.5})
    with core.checkpoint.store_path({"steps_completed": 300}) as (path, uuid):
        (path / "weights").touch()
"""
CONFIG = """
name: x
entrypoint: python3 run.py
searcher: {name: single, metric: accuracy}
environment: {environment_variables: [DET_LOG_METRICS=SETTING, API_TOKEN=hunter2secret]}
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    created = Up(tmp_path)
    created.start()
    yield created
    created.close()


def test_a_trial_log_and_its_commands_explain_a_missing_metric(up: Up, tmp_path: Path):
    context = tmp_path / "context"
    context.mkdir()
    (context / "run.py").write_text(SCRIPT)
    for setting in ("true", "false"):
        (tmp_path / "config.yaml").write_text(CONFIG.replace("SETTING", setting))
        up.det("experiment", "create", str(tmp_path / "config.yaml"), str(context))
    for trial, lines in (("1", ["300", "300"]), ("2", [])):
        assert up.det("experiment", "wait", trial).returncode == 0
        log = up.det("trial", "logs", trial).stdout
        assert log.count("|| DEBUG: training metrics after ") == len(lines), "the first and the last report"
        reported = [line for line in log.splitlines() if " metrics after 300 steps: " in line]
        assert [line.partition(" metrics after ")[2].split()[0] for line in reported] == lines
        assert log.count("validations reported acuracy; did you mean") == 2
        assert log.index("batches has no value") < log.index("the trial ended without any value")
    refused = up.det("trial", "download", "1", "--best", "-o", str(tmp_path / "best"), check=False)
    assert refused.returncode == 3
    assert "the searcher's metric accuracy at its step (validations reported acuracy)" in refused.stderr
    done = up.det("trial", "support-bundle", "1", "-o", str(tmp_path))
    assert Path(done.stdout.strip()).stat().st_size > 0
    uuid = json.loads(up.det("checkpoint", "list", "1", "--json").stdout)[0]["uuid"]
    assert up.det("checkpoint", "rm", uuid, "--yes").returncode == 0
    assert json.loads(up.det("checkpoint", "list", "1", "--json").stdout)[0]["state"] == "DELETED"
    for words in (("name", "1", "new"), ("weight", "1", "2"), ("max-slots", "1", "4"), ("gc-policy", "1")):
        assert up.det("experiment", "set", *words).returncode == 0
    assert "max_slots: 4" in up.det("experiment", "config", "1").stdout
    assert "hunter2secret" not in up.det("experiment", "config", "1").stdout
    passed = up.det("experiment", "create", "--test-mode", str(tmp_path / "config.yaml"), str(context))
    assert passed.stderr.endswith("test passed\n")
    assert json.loads(up.det("checkpoint", "list", "3", "--json").stdout)[0]["state"] == "DELETED"
