"""``master.yaml`` of a Determined cluster loads: defaults of tasks take effect, at the top and for each pool."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster

from determined.link.messages import ContainerSpec
from determined_master.settings.read_settings import SettingsError, read_settings
from determined_master.settings.settings import Settings

FILE = """
config_file: /etc/determined/master.yaml
log: {level: info, color: true}
db: {user: postgres, password: secret, host: db, port: 5432, name: determined}
port: 8081
root: /usr/share/determined/master
cluster_name: lab
telemetry: {enabled: false}
tensorboard_timeout: 300
webhooks: {base_url: https://det.lab}
observability: {enable_prometheus: true}
security:
  initial_user_password: Secret123
  authz: {type: basic}
  ssh: {key_type: ED25519}
checkpoint_storage: {type: shared_fs, host_path: /checkpoints, save_trial_best: 2}
task_container_defaults:
  shm_size_bytes: 1073741824
  network_mode: bridge
  dtrain_network_interface: eth1
  startup_hook: echo cluster
  environment_variables: [A=cluster, B=cluster]
  bind_mounts: [{host_path: /data, container_path: /data, read_only: true}]
  preemption_timeout: 120
  cpu_pod_spec: {spec: {}}
resource_manager:
  type: agent
  require_authentication: false
  scheduler: {type: priority, allow_heterogeneous_fits: false}
resource_pools:
- pool_name: default
- pool_name: gpu
  agent_reconnect_wait: 25s
  kubernetes_namespace: x
  provider: {type: aws, region: us-west-2}
  scheduler: {type: fair_share, allow_heterogeneous_fits: true}
  task_container_defaults:
    startup_hook: echo gpu
    dtrain_network_interface: ib0
    network_mode: host
    environment_variables: [B=gpu]
    preemption_timeout: 60
"""
WARNED = """
config_file db log root telemetry tensorboard_timeout webhooks security.authz security.ssh
resource_manager.require_authentication resource_manager.scheduler.allow_heterogeneous_fits
task_container_defaults.network_mode task_container_defaults.cpu_pod_spec pool.agent_reconnect_wait
pool.kubernetes_namespace pool.scheduler.allow_heterogeneous_fits pool.task_container_defaults.network_mode
"""


def settings_of(folder: Path, text: str = FILE) -> Settings:
    path = folder / "master.yaml"
    path.write_text(text)
    return read_settings(["--config", str(path), "--data", str(folder / "data")], {})


def test_settings_of_determined_are_read_and_those_without_effect_are_named_with_their_line(
    tmp_path: Path, capsys: Any
):
    settings = settings_of(tmp_path)
    assert (settings.port, settings.cluster_name, list(settings.pools)) == (8081, "lab", ["default", "gpu"])
    warnings = capsys.readouterr().err.splitlines()
    named = [line.partition("master.yaml:")[2].partition(": ")[2].partition(" has no effect")[0] for line in warnings]
    assert sorted(named) == sorted([*WARNED.split(), "a provider of type aws"])
    assert f"det-master: warning: {tmp_path}/master.yaml:4:5: db has no effect on this master; set database_url" in (
        next(line for line in warnings if ": db " in line)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("task_container_defaults: {shm_size_byte: 1}", "task_container_defaults.shm_size_byte"),
        ("task_container_defaults: {bind_mounts: [{host_path: relative, container_path: x}]}", "host_path"),
        ("resource_pools: [{pool_name: a, task_container_defaults: {preemption_timeout: -1}}]", "preemption_timeout"),
        ("task_containers_default: {}", 'did you mean "task_container_defaults"?'),
    ],
)
def test_a_wrong_default_is_an_error_at_the_start(tmp_path: Path, text: str, expected: str):
    with pytest.raises(SettingsError, match=expected.replace("?", r"\?")):
        settings_of(tmp_path, text + "\n")


async def spec_of(cluster: Cluster, agent: FakeAgent) -> ContainerSpec:
    (desired,) = await agent.wait_for_desired()
    assert desired.spec is not None
    await agent.exit(desired)
    return desired.spec


async def test_defaults_take_effect_and_those_of_the_pool_and_of_the_task_win(tmp_path: Path):
    settings = settings_of(tmp_path)
    values = {
        name: getattr(settings, name) for name in ("task_container_defaults", "resource_pools", "checkpoint_storage")
    }
    async with open_cluster(tmp_path, **values) as cluster:
        plain, gpu = await cluster.join("plain"), await cluster.join("gpu", pool="gpu")
        first = await cluster.create(CONFIG + "bind_mounts: [{host_path: /own, container_path: /data}]\n")
        spec = await spec_of(cluster, plain)
        assert (spec.shm_bytes, spec.startup_hook) == (1 << 30, "echo cluster")
        assert spec.user_environment == ["A=cluster", "B=cluster"]
        assert [mount["host_path"] for mount in spec.model_dump()["bind_mounts"]] == ["/own"]
        config = (await cluster.get(f"/api/v1/experiments/{first}"))["config"]
        assert config["preemption_timeout"] == 120
        text = "resources: {resource_pool: gpu}\nenvironment: {environment_variables: [A=own]}\n"
        second = await cluster.create(CONFIG + text)
        spec = await spec_of(cluster, gpu)
        assert (spec.startup_hook, spec.environment["DET_INTER_NODE_NETWORK_INTERFACE"]) == ("echo gpu", "ib0")
        assert spec.user_environment == ["A=cluster", "B=cluster", "B=gpu", "A=own"]
        assert (await cluster.get(f"/api/v1/experiments/{second}"))["config"]["preemption_timeout"] == 60
        shown_config = await cluster.get(f"/detent/experiments/{second}/config")
        origins = {each["path"]: each["origin"] for each in shown_config["origins"]}
        assert (origins["preemption_timeout"], origins["resources.shm_size"]) == ("cluster", "cluster")
        body = {"config": {"entrypoint": ["true"], "resources": {"resource_pool": "gpu"}}}
        assert (await cluster.post("/api/v1/commands", body)).status_code == 200
        spec = await spec_of(cluster, gpu)
        assert (spec.startup_hook, spec.shm_bytes) == ("echo gpu", 1 << 30)
        assert spec.user_environment == ["A=cluster", "B=cluster", "B=gpu"]
        master = (await cluster.get("/api/v1/master/config"))["config"]["task_container_defaults"]
        assert (master["startup_hook"], master["preemption_timeout"]) == ("echo cluster", 120)


async def test_the_masters_configuration_is_shown_without_secrets(tmp_path: Path):
    secret = {"registry_auth": {"username": "me", "password": "hunter2"}, "environment_variables": ["HF_TOKEN=hunter2"]}
    pools = [{"pool_name": "default", "task_container_defaults": secret}]
    async with open_cluster(tmp_path, task_container_defaults=secret, resource_pools=pools) as cluster:
        config = (await cluster.get("/api/v1/master/config"))["config"]
    assert "hunter2" not in str(config)
    for part in (config, config["resource_pools"][0]):
        assert part["task_container_defaults"]["registry_auth"] == {"username": "me", "password": "********"}
