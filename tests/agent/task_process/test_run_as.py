"""Tasks that run as the linked users of their owners. These tests need root, which gives up its rights."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import make_context, make_desired, outcome
from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.fake_link_master import FakeLinkMaster

from determined.link.messages import RunAs
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks import identity as identity_hook
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.hooks.identity import IdentityHook, private_mounts
from determined_agent.settings import Settings
from determined_agent.task_process.identity import Identity

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as other users"),
    pytest.mark.xdist_group("container-engine"),
]

ADA = {"uid": 54001, "gid": 54101, "user": "ada", "group": "lab"}
FACTS = """
import grp, json, os, pwd
print(json.dumps({
    "ids": [*os.getresuid(), *os.getresgid()], "groups": os.getgroups(),
    "names": [pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name, os.environ["USER"]],
    "pip": __import__("importlib.util").util.find_spec("pip") is not None,
    "home": os.environ["HOME"], "is_home_writable": os.access(os.environ["HOME"], os.W_OK),
    "status": open("/proc/self/status").read(), "umask": os.umask(0), "shm": os.listdir("/dev/shm"),
    "pids": [pid for pid in os.listdir("/proc") if pid.isdigit()], "tmp": os.listdir("/tmp"), "cwd": os.getcwd(),
}))
"""
DOCKER = {"container_runtime": "docker", "default_images": {"cpu": BASE_IMAGE}}


@pytest.fixture(params=["process", "docker"])
def runtime(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "process":
        return {}
    need_engine()
    return DOCKER


async def test_a_task_runs_as_its_owners_user_without_any_privilege(tmp_path: Path, runtime: dict[str, Any]) -> None:
    master = FakeLinkMaster()
    context = make_context(master, **{"facts.py": FACTS})
    script = "python3 facts.py && echo again > /dev/stdout && echo x > made && stat -c %a made"
    ended, lines, notes = await outcome(tmp_path, script, master=master, run_as=ADA, context=context, settings=runtime)
    assert ended.code == 0, (ended, lines, notes)
    facts = json.loads(lines[0])
    assert facts["ids"] == [54001] * 3 + [54101] * 3
    assert facts["groups"] == [54101]
    assert facts["names"] == ["ada", "lab", "ada"]
    assert facts["pip"] or runtime, "the packages of the task base are there"
    assert facts["home"] == "/run/determined/home"
    assert facts["is_home_writable"]
    assert "NoNewPrivs:\t1" in facts["status"]
    assert "CapEff:\t0000000000000000" in facts["status"]
    assert "CapPrm:\t0000000000000000" in facts["status"]
    assert facts["umask"] == 0o077
    assert len(facts["pids"]) <= 5, "only the task's own processes are listed"
    assert facts["shm"] == []
    assert set(facts["tmp"]) <= (set(tmp_path.parts) if runtime else set()), "the parents of the run folder are visible"
    assert facts["cwd"] == "/run/determined/workdir"
    assert lines[1:] == ["again", "600"]
    assert any("this task runs as ada (uid 54001, gid 54101)" in line for line in notes)


async def test_a_user_without_a_link_is_refused_or_mapped_by_unmapped_users(
    tmp_path: Path, runtime: dict[str, Any]
) -> None:
    ended, _, _ = await outcome(tmp_path / "a", "id -u", owner="bob", settings=runtime | {"unmapped_users": "refuse"})
    assert ended.kind == "failed_to_start"
    assert "bob is linked with no user of this machine" in ended.message
    _, lines, _ = await outcome(tmp_path / "b", "id -u; id -g", settings=runtime | {"unmapped_users": "54002:54102"})
    assert lines == ["54002", "54102"]


async def test_a_task_runs_with_no_new_privileges(tmp_path: Path, runtime: dict[str, Any]) -> None:
    """A task may mount its own files over those that su and sudo trust, and an image may hold setuid programs."""
    ended, lines, _ = await outcome(tmp_path, "grep NoNewPrivs /proc/self/status", run_as=ADA, settings=runtime)
    assert (ended.code, lines) == (0, ["NoNewPrivs:\t1"])


async def test_a_path_that_the_user_cannot_reach_is_not_mounted(tmp_path: Path, runtime: dict[str, Any]) -> None:
    secret = tmp_path / "closed" / "open"
    secret.mkdir(parents=True)
    (secret / "file").write_text("secret")
    (secret / "file").chmod(0o644)
    secret.chmod(0o755)
    secret.parent.chmod(0o700)
    bind = [{"host_path": str(secret), "container_path": "/stolen"}]
    ended, lines, _ = await outcome(tmp_path, "cat /stolen/file", run_as=ADA, bind_mounts=bind, settings=runtime)
    assert ended.kind == "failed_to_start"
    assert f"uid 54001 may not reach host_path {secret}" in ended.message
    storage = {"type": "shared_fs", "host_path": str(secret)}
    ended, lines, _ = await outcome(
        tmp_path / "b", "cat /determined_shared_fs/file", run_as=ADA, checkpoint_storage=storage, settings=runtime
    )
    assert ended.kind == "failed_to_start", lines
    assert f"uid 54001 cannot use {secret}" in ended.message


async def test_a_task_cannot_mount_the_machines_proc(tmp_path: Path, runtime: dict[str, Any]) -> None:
    """A task sees only its own processes. The command lines of others may hold their keys."""
    bind = [{"host_path": "/proc", "container_path": "/stolen"}]
    ended, lines, _ = await outcome(tmp_path, "cat /stolen/*/cmdline", run_as=ADA, bind_mounts=bind, settings=runtime)
    assert (ended.kind, lines) == ("failed_to_start", [])
    assert "machine's processes" in ended.message


async def test_all_users_write_to_the_clusters_storage_and_only_owners_read_their_checkpoints(
    tmp_path: Path, runtime: dict[str, Any]
) -> None:
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "storage")}
    options: dict[str, Any] = {"checkpoint_storage": storage, "is_cluster_storage": True, "settings": runtime}
    script = "mkdir /determined_shared_fs/one && echo weights > /determined_shared_fs/one/file"
    ended, lines, _ = await outcome(tmp_path / "a", script, run_as=ADA, **options)
    assert ended.code == 0, (ended, lines)
    assert (tmp_path / "storage" / "one" / "file").stat().st_uid == 54001
    bob = {"uid": 54002, "gid": 54101}
    script = "cat /determined_shared_fs/one/file 2>/dev/null || rm -r /determined_shared_fs/one 2>/dev/null || echo no"
    _, lines, _ = await outcome(tmp_path / "b", script, run_as=bob, **options)
    assert lines == ["no"]


async def test_the_agent_does_not_follow_links_that_a_task_left_in_its_run_folder(tmp_path: Path) -> None:
    """The agent is root: it must not access for a task files that the task itself cannot access."""
    victim = tmp_path / "victim"
    (victim / "model").mkdir(parents=True)
    (victim / "metrics.jsonl").write_text('{"secret": 1}\n')
    record = {"rank": 0, "code": 7, "last_lines": ["secret of another"], "host": "h", "time": 1.0}
    (victim / "rank-0.json").write_text(json.dumps(record))
    script = f"cd ..; rm -rf spool exits train; for each in spool exits train; do ln -s {victim} $each; done; exit 3"
    environment = {"DET_TRIAL_ID": "1", "DET_SESSION_TOKEN": "t"}
    ended, lines, notes = await outcome(tmp_path, script, run_as=ADA, environment=environment)
    assert ended.code == 3, (ended, lines, notes)
    assert ended.ranks == []
    assert "secret" not in ended.model_dump_json()
    assert sorted(path.name for path in victim.iterdir()) == ["metrics.jsonl", "model", "rank-0.json"]


async def test_an_agent_that_is_not_root_refuses_another_linked_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 100)
    hook = IdentityHook(Settings(data=tmp_path, tasks_as_me=True))
    spec = make_desired(owner="ada", run_as=ADA).spec
    assert spec is not None
    with pytest.raises(NotStarted, match=r"ada is linked with uid 54001 .* runs as uid 1000 and not as root"):
        await hook.do(ContainerPlan("c", spec, RunFolder(tmp_path)))
    own = ContainerPlan("c", spec.model_copy(update={"run_as": RunAs(uid=1000, gid=100)}), RunFolder(tmp_path))
    await hook.do(own)
    assert own.identity is None


def test_file_rights_are_those_of_a_uid_beyond_31_bits(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    with Identity(3_000_000_000, 3_000_000_000, (3_000_000_000,), "ada", "lab").file_rights():
        with pytest.raises(PermissionError):
            secret.read_bytes()
    assert secret.read_bytes() == b""


def test_the_names_of_the_machine_may_be_in_another_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = b"ren\xe9:x:54009:54009:Ren\xe9:/:/bin/sh\n"
    for name in ("PASSWD", "GROUP"):
        path = tmp_path / name.lower()
        path.write_bytes(names)
        monkeypatch.setattr(identity_hook, name, path)
    spec = make_desired(owner="ada", run_as=ADA).spec
    assert spec is not None
    folder = RunFolder(tmp_path / "run")
    folder.make()
    private_mounts(ContainerPlan("c", spec, folder), Identity(54001, 54101, (54101,), "ada", "lab"))
    assert (folder.temporary / "passwd").read_bytes() == names + b"ada:x:54001:54101:::/bin/sh\n"
