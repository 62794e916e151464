"""``det up --pool slurm``: what it adds to the settings of the master, and what it refuses."""

import json
import stat
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from determined_cli.up import slurm_pool
from determined_cli.up.slurm_pool import Unfit

PARTITIONS = """\
PartitionName=cpu Default=YES MaxTime=UNLIMITED State=UP TotalNodes=4 TRES=cpu=8,mem=4G,node=4
PartitionName=gpu Default=NO MaxTime=02:00:00 State=UP TotalNodes=2 TRES=cpu=8,mem=4G,node=2,gres/gpu=8
PartitionName=old Default=NO MaxTime=02:00:00 State=DOWN TotalNodes=2 TRES=cpu=8
"""
ADDRESSES = [("lo", "127.0.0.1"), ("lo", "::1"), ("eth0", "10.0.0.7"), ("eth0", "fe80::1"), ("ib0", "10.1.0.7")]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_pool.interfaces, "all_addresses", lambda: ADDRESSES)


def answer(argv: Sequence[str]) -> str:
    assert list(argv) == ["scontrol", "--oneliner", "show", "partition"]
    return PARTITIONS


def pool(text: str = "slurm:gpu", environ: dict[str, str] | None = None, **changes: Any) -> slurm_pool.SlurmPool:
    values = {"config": None, "host": "eth0", "slots": None, "container_runtime": None, "task_python": None}
    args = Namespace(pool=text, **{**values, **changes})
    return slurm_pool.of(args, environ or {"XDG_DATA_HOME": "/home/ann/.data"}, run=answer)


def provider(variables: dict[str, str]) -> dict[str, Any]:
    (found,) = json.loads(variables["DET_MASTER_RESOURCE_POOLS"])
    assert found["pool_name"] == variables["DET_MASTER_DEFAULT_POOL"] == "slurm"
    return dict(found["provider"])


def test_slots_of_a_partition_with_gpus_are_gpus_and_of_others_cpus():
    found = provider(pool("slurm:gpu", slots=4).variables())
    assert (found["slots_per_agent"], found["sbatch"]) == (4, {"partition": "gpu", "gpus-per-node": 4})
    found = provider(pool("slurm", slots=2).variables())
    assert (found["type"], found["slots_per_agent"], found["sbatch"]) == ("slurm", 2, {})


def test_the_master_listens_on_the_address_of_a_named_interface():
    assert pool(host="ib0").host == "10.1.0.7"
    assert pool(host="10.0.0.7").host == "10.0.0.7"
    assert pool(host=None, environ={"DET_MASTER_HOST": "login.cluster"}).host == "login.cluster"


@pytest.mark.parametrize("host", [None, "127.0.0.1", "localhost", "::1", "lo"])
def test_a_loopback_address_is_refused_with_those_that_the_nodes_reach(host: str | None):
    with pytest.raises(
        Unfit, match=r"cannot reach \S+\. Listen on .*: --host 10\.0\.0\.7 \(eth0\); --host 10\.1\.0\.7"
    ):
        pool(host=host)


@pytest.mark.parametrize(
    ("text", "changes", "problem"),
    [
        ("kubernetes", {}, "write slurm, or slurm:PARTITION"),
        ("slurm:", {}, "write slurm, or slurm:PARTITION"),
        ("slurm:gpus", {}, "gpus"),
        ("slurm:old", {}, "the partition old is DOWN"),
        ("slurm:gpu", {"slots": 0}, "1 slot or more"),
        ("slurm:gpu", {"container_runtime": "docker"}, "--container-runtime is for an agent on this machine"),
    ],
)
def test_what_no_job_of_slurm_could_serve_is_refused(text: str, changes: dict[str, Any], problem: str):
    with pytest.raises(Unfit, match=problem):
        pool(text, **changes)


def test_settings_that_have_pools_already_are_refused(tmp_path: Path):
    file = tmp_path / "master.yaml"
    file.write_text("resource_pools: [{pool_name: a}]\n")
    with pytest.raises(Unfit, match="resource_pools of the master's settings both say the pools"):
        pool(config=str(file))
    with pytest.raises(Unfit, match="default_pool of the master's settings"):
        pool(environ={"DET_MASTER_DEFAULT_POOL": "a"})


def test_checkpoints_go_to_the_home_unless_the_settings_name_a_storage(tmp_path: Path):
    storage = json.loads(pool().variables()["DET_MASTER_CHECKPOINT_STORAGE"])
    assert storage == {"type": "shared_fs", "host_path": "/home/ann/.data/detent/checkpoints"}
    file = tmp_path / "master.yaml"
    file.write_text("checkpoint_storage: {type: shared_fs, host_path: /scratch}\n")
    assert "DET_MASTER_CHECKPOINT_STORAGE" not in pool(config=str(file)).variables()


def test_a_certificate_for_the_address_is_made_once_with_a_private_key(tmp_path: Path):
    found = slurm_pool.certificate(tmp_path, "10.0.0.7", {})
    file, key = Path(found["DET_MASTER_TLS_CERT"]), Path(found["DET_MASTER_TLS_KEY"])
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = file.read_bytes()
    assert slurm_pool.certificate(tmp_path, "10.0.0.7", {}) == found
    assert file.read_bytes() == before
    slurm_pool.certificate(tmp_path, "10.1.0.7", {})
    renamed = file.read_bytes()
    assert renamed != before
    slurm_pool.certificate(tmp_path, "10.1.0.7", {}, datetime.now(UTC) + timedelta(days=1000))
    assert file.read_bytes() != renamed
    file.write_bytes(b"")  # after a full disk
    slurm_pool.certificate(tmp_path, "10.1.0.7", {})
    assert b"BEGIN CERTIFICATE" in file.read_bytes()
    assert slurm_pool.certificate(tmp_path, "10.0.0.7", {"tls_cert": "/etc/master.crt"}) == {}
