"""Resource pools: their agents and jobs, their settings, defaults, and pools that do not exist."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.cluster import CONFIG, open_cluster
from tests.support.waiting import eventually

from determined_master.settings.read_settings import SettingsError, read_settings
from determined_master.settings.settings import Settings

POOLS = [
    {
        "pool_name": "gpu",
        "description": "eight H100",
        "scheduler": {"type": "priority", "preemption": True, "default_priority": 50},
    },
    {"pool_name": "cpu", "max_aux_containers_per_agent": 3, "scheduler": {"type": "fair_share"}},
]
SETTINGS = {"resource_pools": POOLS, "default_pool": "gpu", "default_aux_pool": "cpu"}


def provider(**changes: object) -> dict[str, object]:
    values = {"type": "command", "max_agents": 2, "launch": ["start", "{agent_id}"], "terminate": ["end", '{"a": 1}']}
    return {"resource_pools": [{"pool_name": "default", "provider": values | changes}]}


async def test_each_pool_shows_its_agents_slots_and_scheduler(tmp_path: Path):
    async with open_cluster(tmp_path, **SETTINGS) as cluster:
        await cluster.join("a", slots=8, pool="gpu")
        await cluster.join("b", slots=2, pool="cpu")
        await cluster.join("c", slots=4, pool="cpu")
        gpu, cpu = (await cluster.get("/api/v1/resource-pools"))["resourcePools"]
    assert (gpu["name"], gpu["description"], gpu["numAgents"], gpu["slotsAvailable"]) == ("gpu", "eight H100", 1, 8)
    assert gpu["details"]["priorityScheduler"] == {"preemption": True, "defaultPriority": 50, "k8Priorities": []}
    assert (gpu["defaultComputePool"], gpu["defaultAuxPool"]) == (True, False)
    assert (cpu["numAgents"], cpu["slotsAvailable"], cpu["slotsPerAgent"]) == (2, 6, 4)
    assert (cpu["schedulerType"], cpu["auxContainerCapacity"]) == ("SCHEDULER_TYPE_FAIR_SHARE", 6)
    assert (cpu["defaultComputePool"], cpu["defaultAuxPool"]) == (False, True)


async def test_work_without_a_pool_goes_to_the_default_one_of_its_kind(tmp_path: Path):
    async with open_cluster(tmp_path, **SETTINGS) as cluster:
        gpu, cpu = await cluster.join("a", pool="gpu"), await cluster.join("b", pool="cpu")
        await cluster.create()
        await cluster.create(CONFIG + "resources: {slots_per_trial: 0}\n")
        await cluster.create(CONFIG + "resources: {resource_pool: cpu}\n")
        assert [each.allocation_id.split(".")[0] for each in await gpu.wait_for_desired()] == ["1"]
        assert {each.allocation_id.split(".")[0] for each in await cpu.wait_for_desired(2)} == {"2", "3"}
        config = (await cluster.get("/api/v1/experiments/1"))["experiment"]["config"]
        assert (config["resources"]["resource_pool"], config["resources"]["priority"]) == ("gpu", 50)


async def test_a_pool_that_is_gone_from_the_settings_keeps_its_jobs_and_explains_their_wait(tmp_path: Path):
    async with open_cluster(tmp_path, **SETTINGS) as cluster:
        await cluster.create(CONFIG + "resources: {resource_pool: cpu}\n")
    async with open_cluster(tmp_path, resource_pools=[POOLS[0]], default_pool="gpu") as cluster:

        async def is_explained() -> bool:
            queue = (await cluster.get("/detent/cluster/overview"))["queue"]
            return [entry["waiting"] for entry in queue] == [
                'resource pool "cpu" is not in the settings of the master any more; '
                "move the job to another one with `det job update`"
            ]

        await eventually(is_explained)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"resource_pools": [{"pool_name": "a"}, {"pool_name": "a"}]}, 'resource_pools has "a" twice'),
        ({"resource_pools": [{"pool_name": "a"}]}, 'default_pool is "default", which is none of resource_pools: a'),
        ({"resource_pools": [{"pool_name": "default", "sheduler": {}}]}, "sheduler"),
        ({"scheduler": {"type": "round_robin"}}, "'priority' or 'fair_share'"),
        (provider(type="pbs"), "'command', 'local' or 'slurm'"),
        (provider(type="slurm"), "launch belongs to providers of type command; remove it"),
        (provider(nodes=2), "nodes belongs to providers of type slurm; remove it"),
        (provider(max_agents=0), "max_agents"),
        (provider(min_agents=3), r"min_agents \(3\) is larger than max_agents \(2\)"),
        (provider(launch=[]), "a provider of type command needs launch"),
        (provider(terminate=[""]), "a provider of type command needs terminate"),
        (provider(launch=["a", "--id={agentid}"]), r'unknown placeholder "{agentid}"; did you mean "{agent_id}"\?'),
        (provider(type="local"), "launch belongs to providers of type command"),
        (provider(tasks_as_me=True), "tasks_as_me belongs to providers of type local"),
        (provider(idle_timeout=-1), "idle_timeout"),
    ],
)
def test_invalid_settings_of_pools_are_refused_at_the_start(tmp_path: Path, settings: dict, expected: str):
    with pytest.raises(ValidationError, match=expected):
        Settings(data=tmp_path, **settings)


def test_a_local_provider_needs_tasks_as_me_if_tasks_run_as_the_masters_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    local = {"type": "local", "max_agents": 1}
    pools = [{"pool_name": "default", "provider": local}]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ValidationError, match='pool "default" would run as the user of this master'):
        Settings(data=tmp_path, resource_pools=pools)
    local["tasks_as_me"] = True
    assert Settings(data=tmp_path, resource_pools=pools).pools["default"].provider is not None


def test_wrong_settings_of_a_provider_are_named_with_their_line(tmp_path: Path):
    path = tmp_path / "master.yaml"
    path.write_text("port: 0\nresource_pools:\n  - {pool_name: default, provider: {type: local}}\n")
    with pytest.raises(SettingsError, match=r"master\.yaml:3:\d+: resource_pools\.0\.provider\.max_agents"):
        read_settings(["--config", str(path)], {})


def test_the_master_reads_pools_as_determined_does(tmp_path: Path):
    path = tmp_path / "master.yaml"
    path.write_text(
        "resource_manager:\n"
        "  type: agent\n"
        "  default_compute_resource_pool: gpu\n"
        "  scheduler: {type: fair_share, fitting_policy: worst}\n"
        "resource_pools: [{pool_name: gpu}]\n"
    )
    settings = read_settings(["--config", str(path)], {})
    scheduler = settings.pools["gpu"].scheduler
    assert settings.default_pool == "gpu"
    assert scheduler is not None
    assert (scheduler.type, scheduler.fitting_policy, scheduler.default_priority) == ("fair_share", "worst", 42)
    path.write_text("resource_manager: {type: kubernetes}\n")
    with pytest.raises(SettingsError, match=r"master\.yaml:1:\d+: resource_manager\.type has no effect"):
        read_settings(["--config", str(path)], {})


@pytest.mark.parametrize(("text", "expected"), [("", True), ("preemption: false\n", False)])
def test_det_up_preempts_unless_its_settings_say_otherwise(tmp_path: Path, text: str, expected: bool):
    path = tmp_path / "master.yaml"
    path.write_text(text)
    settings = read_settings(["--config", str(path), "--one-machine"], {})
    scheduler = settings.pools["default"].scheduler
    assert scheduler is not None
    assert scheduler.preemption is expected
    usual = read_settings(["--config", str(path)], {}).pools["default"].scheduler
    assert usual is not None
    assert usual.preemption is False


async def test_a_trial_beyond_a_pool_is_accepted_with_a_warning_without_launch_error(tmp_path: Path):
    async with open_cluster(tmp_path, launch_error=False) as cluster:
        await cluster.join(slots=1)
        config = CONFIG + "resources: {slots_per_trial: 2}\n"
        answer = (await cluster.post("/api/v1/experiments", {"config": config, "activate": True})).json()
        assert answer["experiment"]["id"] == 1
        checked = (await cluster.post("/detent/config/check", {"config": config})).json()
        assert [(each["code"], each["severity"]) for each in checked["diagnostics"]] == [("W505", "warning")]


def test_pools_are_read_from_the_environment_as_json(tmp_path: Path):
    environment = {"DET_MASTER_RESOURCE_POOLS": '[{"pool_name": "default", "max_slots_per_user": 4}]'}
    assert read_settings(["--data", str(tmp_path)], environment).pools["default"].max_slots_per_user == 4


def test_the_checkpoint_storage_is_read_from_the_environment_as_json(tmp_path: Path):
    environment = {"DET_MASTER_CHECKPOINT_STORAGE": '{"type": "shared_fs", "host_path": "/scratch/checkpoints"}'}
    settings = read_settings(["--data", str(tmp_path)], environment)
    assert settings.storage_default == {"type": "shared_fs", "host_path": "/scratch/checkpoints"}
