"""Trials with the official library in their environment are paused, resumed and killed, as root and as an ordinary
user."""

import json
import os

import pytest
from tests.e2e.official import configs
from tests.e2e.official.steering import as_read_by_the_sdk, pause_resume_kill
from tests.e2e.official.test_sdk import reported
from tests.support import ordinary_user
from tests.support.official_client import OFFICIAL
from tests.support.official_cluster import OfficialCluster

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(60, "trains with the official library")]
LAYER = "python3 -m determined.launch.torch_distributed"
PACE = 0.1
CLUSTERS = [
    pytest.param("official", marks=pytest.mark.long if os.getuid() == 0 else ()),
    pytest.param("of_ordinary_user", marks=pytest.mark.skipif(os.getuid() != 0, reason="is no root already")),
]
"""As root they are long, since the other tests with the official client run as root."""


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> OfficialCluster:
    created: OfficialCluster = request.getfixturevalue(request.param)
    return created


def is_of_the_environment(log: str, cluster: OfficialCluster) -> bool:
    user = os.stat(cluster.folder).st_uid
    lines = [line for line in log.splitlines() if "library:" in line and "user:" in line]
    return bool(lines) and all(f"{OFFICIAL}/lib/" in line and f"user: {user}" in line for line in lines)


@pytest.mark.long  # test_cli.py pauses and kills, the test of our library runs one
def test_a_script_is_paused_resumed_and_killed(cluster: OfficialCluster):
    config = configs.script("script", steps=configs.ENDLESS, seconds=PACE)
    experiment, paused_at, log = pause_resume_kill(cluster, config, configs.SCRIPT)
    assert is_of_the_environment(log, cluster)
    assert f"preempted at {paused_at}\n" in log
    assert f"resumed at {paused_at}\n" in log
    reports = as_read_by_the_sdk(cluster, experiment)
    assert [metrics for _step, metrics in reports] == [reported(step) for step, _metrics in reports]


@pytest.mark.long
def test_a_script_under_the_official_launch_layer_is_paused_resumed_and_killed(cluster: OfficialCluster):
    config = configs.script("layer", steps=configs.ENDLESS, seconds=PACE, entrypoint=f"{LAYER} python3 run.py")
    experiment, paused_at, log = pause_resume_kill(cluster, config, configs.SCRIPT)
    assert is_of_the_environment(log, cluster)
    assert f"[rank=0] || resumed at {paused_at}\n" in log
    reports = as_read_by_the_sdk(cluster, experiment)
    assert [metrics for _step, metrics in reports] == [reported(step) for step, _metrics in reports]


@pytest.mark.long  # the official client pauses and kills other trials in test_cli.py
def test_a_trial_class_with_a_legacy_entrypoint_is_paused_resumed_and_killed(cluster: OfficialCluster):
    config = configs.trial_class("class", batches=configs.ENDLESS, seconds=PACE)
    # The library of 0.38.1 restores with a call of torch.load that torch 2.13 refuses by default.
    config["environment"]["environment_variables"] = ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1"]
    experiment, _paused_at, log = pause_resume_kill(cluster, config, configs.TRIAL_CLASS)
    assert is_of_the_environment(log, cluster)
    printed = [json.loads(line.split("reported ")[1]) for line in log.splitlines() if "|| reported " in line]
    reports = as_read_by_the_sdk(cluster, experiment)
    # A kill loses data in transit: the last report after its line, or the last line in the launch layer.
    assert abs(len(printed) - len(reports)) <= 1
    common = min(len(printed), len(reports))
    assert [metrics["loss"] for _step, metrics in reports[:common]] == pytest.approx(
        [line["loss"] for line in printed[:common]]
    )


def test_a_trial_uses_our_library_if_the_environment_has_none(cluster: OfficialCluster):
    config = configs.script("ours", steps=4, official=False)
    experiment = cluster.create(config, configs.SCRIPT)
    cluster.reaches(experiment, "COMPLETED")
    log = cluster.logs(experiment)
    assert f"library: {OFFICIAL}" not in log
    assert f"library: {cluster.folder}/data/agent/harness/" in log
    reports = as_read_by_the_sdk(cluster, experiment)
    assert reports == [(step, reported(step)) for step in range(1, 5)]


def test_a_folder_of_the_machine_is_mounted_at_another_path(cluster: OfficialCluster):
    source = cluster.folder / "data-a"
    source.mkdir(exist_ok=True)
    (source / "samples").write_text("1 2 3")
    source.chmod(0o755)
    target = f"/detent-b-{os.getpid()}/within"
    for library in (False, True):
        config = configs.script(
            f"mounts-{library}",
            steps=2,
            official=library,
            bind_mounts=[{"host_path": str(source), "container_path": target}],
        )
        config["environment"]["environment_variables"] = [f"LOOK_AT={target}"]
        experiment = cluster.create(config, configs.SCRIPT)
        cluster.reaches(experiment, "COMPLETED")
        assert f"found: {target} ['samples']" in cluster.logs(experiment)
    assert not os.path.exists(target)


def test_the_cluster_of_the_ordinary_user_runs_as_that_user(request: pytest.FixtureRequest):
    if os.getuid() != 0:
        pytest.skip("is no root already")
    cluster: OfficialCluster = request.getfixturevalue("of_ordinary_user")
    assert os.stat(cluster.folder / "data" / "password").st_uid == ordinary_user.USER
