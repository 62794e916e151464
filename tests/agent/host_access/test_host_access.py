"""The folders, devices and capabilities that containers may use, and the second check right before a mount.

No container engine is used.
"""

import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import make_desired

from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import ContainerLaunch, NotStarted
from determined_agent.hooks.container_mounts import ContainerMountsHook, HostAccessHook
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.host_access import access as host_access
from determined_agent.host_access.access import (
    ClusterFolders,
    HostAccess,
    HostRules,
    _open_without_links,
    is_allowed_device,
)
from determined_agent.host_access.host_mounts import HostMounts
from determined_agent.host_access.mount_probe import can_mount_as_root
from determined_agent.run_folders.agent_state import AgentState
from determined_agent.settings import Settings
from determined_agent.task_process.identity import Identity
from determined_agent.task_process.namespaces import _create, _opened

ADA = Identity(54001, 54101, (54101,), "ada", "lab")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as other users")
needs_mounts = pytest.mark.skipif(not can_mount_as_root(), reason="only root can hold a folder by a mount")


def access_of(tmp_path: Path, folders: ClusterFolders = ClusterFolders(), **settings: Any) -> HostAccess:
    (tmp_path / "agent").mkdir(exist_ok=True)
    return HostAccess(Settings(data=tmp_path / "agent", container_runtime="docker", **settings), lambda: folders)


def plan_of(tmp_path: Path, identity: Identity | None = None, **spec: Any) -> ContainerPlan:
    folder = RunFolder(tmp_path / "agent" / "run")
    folder.make()
    container_spec = make_desired(**spec).spec
    assert container_spec is not None
    return ContainerPlan("c", container_spec, folder, identity=identity)


def bind(path: object) -> dict[str, Any]:
    return {"bind_mounts": [{"host_path": str(path), "container_path": "/x"}]}


def store(path: object) -> dict[str, Any]:
    return {"checkpoint_storage": {"type": "shared_fs", "host_path": str(path)}}


def refusal(access: HostAccess, plan: ContainerPlan) -> str:
    try:
        access.check(plan)
    except NotStarted as problem:
        return str(problem)
    return ""


RULES = HostRules(
    ("/data", "/m/named"), ("/m/checkpoints", "/nfs"), {"/m": "the master's data folder", "/data/e.sock": "the socket"}
)


@pytest.mark.parametrize(
    ("path", "is_allowed", "is_allowed_as_own_user"),
    [
        ("/data/x", True, True),
        ("/datax", False, True),
        ("/nfs", True, True),
        ("/home/ada", False, True),
        ("/m", False, False),
        ("/m/blobs", False, False),
        ("/m/checkpoints/1", True, True),
        ("/m/named/x", True, True),
        ("/", False, False),
        ("/data", False, False),
        ("/data/e.sock", False, False),
    ],
)
def test_host_rules_allow_named_folders_and_the_users_own_and_refuse_protected_ones(
    path: str, is_allowed: bool, is_allowed_as_own_user: bool
) -> None:
    assert (RULES.refusal(path, has_own_user=False) is None) is is_allowed
    assert (RULES.refusal(path, has_own_user=True) is None) is is_allowed_as_own_user


def test_a_protected_folder_is_refused_even_if_it_is_the_clusters_storage() -> None:
    rules = HostRules(storage=("/m",), protected={"/m": "the master's data folder"})
    assert rules.refusal("/m", has_own_user=False) == ("/m is the master's data folder", "/m")


def test_a_protected_folder_is_allowed_if_the_settings_name_it() -> None:
    rules = HostRules(("/run", "/run/e.sock"), (), {"/run/e.sock": "the socket"})
    assert rules.refusal("/run", has_own_user=False) is None
    assert rules.refusal("/run/e.sock", has_own_user=False) is None


@pytest.mark.parametrize(
    ("path", "allowed", "is_allowed"),
    [
        ("/dev/infiniband/uverbs0", ["/dev/infiniband"], True),
        ("/dev/infiniband", ["/dev/infiniband/"], True),
        ("/dev/infiniband", ["/dev/infiniband/uverbs0"], False),
        ("/dev/infinibandx", ["/dev/infiniband"], False),
        ("/dev/nvidia3", ["/dev/nvidia*"], True),
        ("/dev/sda", [], False),
    ],
)
def test_a_device_is_allowed_if_a_file_a_folder_or_a_pattern_names_it(
    path: str, allowed: list[str], is_allowed: bool
) -> None:
    assert is_allowed_device(path, allowed) is is_allowed


@pytest.mark.parametrize("key", [bind, store])
def test_a_folder_that_no_setting_names_is_refused_with_the_line_that_allows_it(
    tmp_path: Path, key: Callable[[object], dict[str, Any]]
) -> None:
    (tmp_path / "data").mkdir()
    text = refusal(access_of(tmp_path), plan_of(tmp_path, **key(tmp_path / "data")))
    assert "host_path: the administrator of this agent does not allow" in text
    assert text.endswith(f"adds to agent.yaml: allowed_host_paths: [{tmp_path / 'data'}]")
    for name in ("allowed_host_paths", "allowed_bind_mounts"):
        allowed = access_of(tmp_path, **{name: [tmp_path / "data"]})
        assert refusal(allowed, plan_of(tmp_path, **key(tmp_path / "data"))) == ""


def test_the_clusters_storage_is_allowed_without_a_setting_of_the_agent(tmp_path: Path) -> None:
    folders = ClusterFolders((str(tmp_path / "storage"),), "")
    assert refusal(access_of(tmp_path, folders), plan_of(tmp_path, **store(tmp_path / "storage"))) == ""
    assert refusal(access_of(tmp_path, folders), plan_of(tmp_path, **store(tmp_path / "other"))) != ""
    earlier = plan_of(tmp_path, is_cluster_storage=True, **store(tmp_path / "storage"))
    assert refusal(access_of(tmp_path), earlier) == "", "a master of an earlier version marks the task"


@pytest.mark.parametrize("key", [bind, store])
@pytest.mark.parametrize("path", ["master", "master/blobs", "master/../master", "link", ".", "agent", "token"])
@pytest.mark.parametrize("is_users", [False, pytest.param(True, marks=needs_root)])
def test_the_data_folders_of_master_and_agent_are_refused_even_if_a_parent_is_allowed(
    tmp_path: Path, key: Callable[[object], dict[str, Any]], path: str, is_users: bool
) -> None:
    master = tmp_path / "master"
    for name in ("blobs", "checkpoints"):
        (master / name).mkdir(parents=True)
    for name in ("secret", "agent-token"):
        (master / name).touch()
    (tmp_path / "link").symlink_to(master)
    (tmp_path / "token").touch()
    folders = ClusterFolders((str(master / "checkpoints"),), str(master))
    access = access_of(tmp_path, folders, allowed_host_paths=[tmp_path], token_file=tmp_path / "token")
    plan = plan_of(tmp_path, ADA if is_users else None, **key(f"{tmp_path}/{path}"))
    text = refusal(access, plan)
    assert "data folder" in text or "join token" in text, text
    assert "adds to agent.yaml: allowed_host_paths:" in text
    assert refusal(access, plan_of(tmp_path, **key(master / "checkpoints"))) == ""


def test_the_data_folder_of_another_master_is_recognised_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "data" / "other" / "blobs").mkdir(parents=True)
    for name in ("secret", "agent-token"):
        (tmp_path / "data" / "other" / name).touch()
    access = access_of(tmp_path, allowed_host_paths=[tmp_path / "data"])
    text = refusal(access, plan_of(tmp_path, **bind(tmp_path / "data" / "other" / "blobs")))
    assert f"{tmp_path}/data/other/blobs is in the master's data folder" in text


@pytest.mark.parametrize("path", ["/", "/run", "/var/run", "/var/run/docker.sock", "/run/../run", "/proc/self/root"])
@pytest.mark.parametrize("is_users", [False, pytest.param(True, marks=needs_root)])
def test_the_engines_socket_and_its_parent_folders_are_refused(tmp_path: Path, path: str, is_users: bool) -> None:
    access = access_of(tmp_path, allowed_host_paths=["/"])
    text = refusal(access, plan_of(tmp_path, ADA if is_users else None, **store(path)))
    assert "contains" in text or "is the container engine's socket" in text, text


@pytest.mark.parametrize("is_users", [False, pytest.param(True, marks=needs_root)])
def test_a_bind_mount_of_proc_is_refused(tmp_path: Path, is_users: bool) -> None:
    access = access_of(tmp_path, allowed_host_paths=["/"])
    text = refusal(access, plan_of(tmp_path, ADA if is_users else None, **bind("/proc")))
    assert "/proc is the machine's processes" in text


def test_allowed_capabilities_match_with_and_without_prefix_in_any_case(tmp_path: Path) -> None:
    wanted = plan_of(tmp_path, add_capabilities=["CAP_SYS_PTRACE", "sys_admin"])
    text = refusal(access_of(tmp_path, allowed_capabilities=["cap_sys_ptrace"]), wanted)
    assert "environment.add_capabilities: the administrator of this agent does not allow SYS_ADMIN" in text
    assert text.endswith("allowed_capabilities: [SYS_ADMIN]")
    assert refusal(access_of(tmp_path, allowed_capabilities=["SYS_PTRACE", "CAP_SYS_ADMIN"]), wanted) == ""
    assert "does not allow ALL" in refusal(access_of(tmp_path), plan_of(tmp_path, add_capabilities=["ALL"]))


def test_a_device_that_is_not_allowed_is_refused_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    for path in ("/dev/null", tmp_path / "null"):
        wanted = plan_of(tmp_path, devices=[{"host_path": str(path), "container_path": "/dev/x"}])
        text = refusal(access_of(tmp_path), wanted)
        assert text.startswith(
            "resources.devices[0].host_path: the administrator of this agent does not allow /dev/null"
        )
        assert text.endswith("allowed_devices: [/dev/null]")
        assert refusal(access_of(tmp_path, allowed_devices=["/dev/null"]), wanted) == ""


def test_list_settings_in_one_text_are_separated_by_commas(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, allowed_host_paths="/a, /b", allowed_capabilities="SYS_PTRACE")  # type: ignore[arg-type]
    assert (settings.host_paths, settings.allowed_capabilities) == ([Path("/a"), Path("/b")], ["SYS_PTRACE"])
    with pytest.raises(ValueError, match="relative is not an absolute path"):
        Settings(data=tmp_path, allowed_host_paths=[Path("relative")])


def test_the_cluster_folders_are_known_to_a_restarted_agent(tmp_path: Path) -> None:
    state, folders = AgentState(tmp_path), ClusterFolders(("/storage",), "/master")
    assert state.obey("cluster", 1, folders)
    state.close()
    restarted = AgentState(tmp_path)
    assert restarted.cluster_folders == folders
    restarted.close()


async def test_a_refused_storage_folder_is_not_created(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, **store(tmp_path / "new"))
    with pytest.raises(NotStarted):
        await HostAccessHook(access_of(tmp_path)).do(plan)
    assert not (tmp_path / "new").exists()


@pytest.fixture
def home() -> Any:
    """Yields a temporary folder that only root can change, with a folder of ada's and one behind a closed folder."""
    import shutil
    import tempfile

    parent = Path(tempfile.mkdtemp(prefix="detent-homes-"))
    parent.chmod(0o755)
    for name in ("ada", "ada/work", "closed", "closed/open"):
        (parent / name).mkdir()
    (parent / "ada" / "work" / "file").write_text("mine")
    (parent / "closed" / "open" / "file").write_text("secret")
    (parent / "closed").chmod(0o700)
    for path in (parent / "ada", parent / "ada" / "work"):
        os.chown(path, ADA.uid, ADA.gid)
    yield parent
    shutil.rmtree(parent)


async def launch_of(access: HostAccess, plan: ContainerPlan) -> ContainerLaunch:
    await ContainerMountsHook(access).do(plan)
    mounts = tuple(mount for mount in plan.mounts if mount.named_by)
    return ContainerLaunch(plan.folder, ("true",), {}, plan.workdir, mounts, None, plan.identity)


def swap(folder: Path, target: Path) -> None:
    folder.rename(folder.with_name("former"))
    folder.symlink_to(target)


@needs_root
async def test_a_linked_user_may_mount_only_folders_that_their_own_rights_reach(tmp_path: Path, home: Path) -> None:
    access = access_of(tmp_path)
    assert refusal(access, plan_of(tmp_path, ADA, **bind(home / "ada" / "work"))) == ""
    text = refusal(access, plan_of(tmp_path, ADA, **bind(home / "closed" / "open")))
    assert f"uid 54001 may not reach host_path {home}/closed/open" in text
    (home / "ada" / "link").symlink_to(home / "closed" / "open")
    text = refusal(access, plan_of(tmp_path, ADA, **bind(home / "ada" / "link")))
    assert f"uid 54001 may not reach host_path {home}/closed/open" in text


@needs_root
@pytest.mark.parametrize("key", [bind, store])
async def test_a_folder_that_becomes_a_link_before_the_mount_is_refused(
    tmp_path: Path, home: Path, key: Callable[[object], dict[str, Any]]
) -> None:
    access = access_of(tmp_path)
    launch = await launch_of(access, plan_of(tmp_path, ADA, **key(home / "ada" / "work")))
    swap(home / "ada" / "work", home / "closed" / "open")
    with pytest.raises(NotStarted, match="has become a link"):
        async with HostMounts(access, tmp_path / "agent").held(launch):
            pytest.fail("the engine is asked to mount a link")


@needs_root
async def test_a_folder_that_is_no_longer_allowed_is_refused_right_before_the_mount(tmp_path: Path) -> None:
    """The folder is the same, but the rules have changed since the first check."""
    (tmp_path / "data").mkdir()
    launch = await launch_of(
        access_of(tmp_path, allowed_host_paths=[tmp_path / "data"]), plan_of(tmp_path, **bind(tmp_path / "data"))
    )
    with pytest.raises(NotStarted, match="does not allow"):
        async with HostMounts(access_of(tmp_path), tmp_path / "agent").held(launch):
            pytest.fail("the engine is asked to mount it")


@needs_mounts
async def test_a_folder_that_becomes_a_link_during_the_mount_still_mounts_the_checked_folder(
    tmp_path: Path, home: Path
) -> None:
    access = access_of(tmp_path)
    launch = await launch_of(access, plan_of(tmp_path, ADA, **bind(home / "ada" / "work")))
    async with HostMounts(access, tmp_path / "agent").held(launch) as (mount,):
        swap(home / "ada" / "work", home / "closed" / "open")
        assert (Path(mount.source) / "file").read_text() == "mine"
        held_folder = Path(mount.source).parent
    assert not held_folder.exists()
    assert (home / "ada" / "former" / "file").read_text() == "mine", "the end of the mount removes no file"


@needs_mounts
async def test_a_single_file_is_held_too_and_remove_leftovers_releases_it(tmp_path: Path, home: Path) -> None:
    access = access_of(tmp_path)
    launch = await launch_of(access, plan_of(tmp_path, ADA, **bind(home / "ada" / "work" / "file")))
    async with HostMounts(access, tmp_path / "agent").held(launch) as (held,):
        assert Path(held.source).read_text() == "mine"
        HostMounts(access, tmp_path / "agent").remove_leftovers()
        assert list((tmp_path / "agent" / "mounts").iterdir()) == []
    assert (home / "ada" / "work" / "file").read_text() == "mine"


@needs_mounts
async def test_a_named_folder_is_mounted_by_its_own_path_unless_users_can_replace_it(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "link").symlink_to(home)
    access = access_of(tmp_path, allowed_host_paths=[tmp_path / "link", home / "ada" / "work"])
    for named, is_its_own in ((home, True), (home / "ada" / "work", False)):
        launch = await launch_of(access, plan_of(tmp_path, **bind(named)))
        async with HostMounts(access, tmp_path / "agent").held(launch) as (mount,):
            assert (mount.source == str(named)) is is_its_own


@needs_root
def test_a_listed_folder_that_a_user_replaces_by_a_link_is_refused(tmp_path: Path, home: Path) -> None:
    access = access_of(tmp_path, allowed_host_paths=[home / "ada" / "work"])
    assert refusal(access, plan_of(tmp_path, **bind(home / "ada" / "work"))) == ""
    swap(home / "ada" / "work", home / "closed" / "open")
    text = refusal(access, plan_of(tmp_path, **bind(home / "ada" / "work")))
    assert f"does not allow {home}/closed/open" in text


async def test_an_agent_without_mount_rights_allows_named_folders_and_those_that_only_root_can_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_access, "can_mount_as_root", lambda: False)
    (tmp_path / "data" / "deep" / "er").mkdir(parents=True)
    access = access_of(tmp_path, allowed_host_paths=[tmp_path / "data"])
    assert refusal(access, plan_of(tmp_path, **bind(tmp_path / "data"))) == ""
    text = refusal(access, plan_of(tmp_path, **bind(tmp_path / "data" / "deep")))
    if os.geteuid() == 0:
        assert f"{tmp_path}/data/deep is not named itself" in text, "tasks run as root, who can exchange everything"
        tmp_path.chmod(0o755)
        for folder in (tmp_path / "data", tmp_path / "data" / "deep"):
            folder.chmod(0o755)
        # Not ``check``: ada may lack access to the folders above tmp_path.
        access.refuse(str(tmp_path / "data" / "deep"), "bind_mounts[0].host_path", ADA)
        (tmp_path / "data").chmod(0o777)
        with pytest.raises(NotStarted, match="is not named itself"):
            access.refuse(str(tmp_path / "data" / "deep"), "bind_mounts[0].host_path", ADA)
        with pytest.raises(NotStarted, match="is not named itself"):
            access.refuse("/usr/share", "bind_mounts[0].host_path", ADA)
    else:
        assert f"{tmp_path}/data/deep is not named itself" in text, "the folder above it is the agent's own"


def test_a_mount_that_does_not_answer_counts_as_none_until_it_answers(monkeypatch: pytest.MonkeyPatch):
    def hang(argv: list[str], **_: Any) -> None:
        raise subprocess.TimeoutExpired(argv, 30)

    spec = importlib.util.find_spec("determined_agent.host_access.mount_probe")
    assert spec is not None
    assert spec.loader is not None
    probe = importlib.util.module_from_spec(spec)  # without the answers of other tests
    spec.loader.exec_module(probe)
    monkeypatch.setattr(subprocess, "run", hang)
    assert (probe.can_mount(), probe.can_mount_as_root()) == (False, False)
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 0))
    assert (probe.can_mount(), probe.can_mount_as_root()) == (True, True)
    monkeypatch.setattr(subprocess, "run", hang)
    assert (probe.can_mount(), probe.can_mount_as_root()) == (True, True), "an answer is kept"


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_place_that_another_starting_task_has_just_made_is_taken(tmp_path: Path, is_folder: bool) -> None:
    with _opened(str(tmp_path)) as folder:
        for _ in range(2):
            _create(folder, "place", is_folder=is_folder)
        with pytest.raises(FileExistsError):
            _create(folder, "place", is_folder=not is_folder)


def test_a_folder_that_another_starting_task_makes_at_the_same_time_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def make_twice(*given: Any, **options: Any) -> None:
        make(*given, **options)
        make(*given, **options)

    monkeypatch.setattr(os, "mkdir", make_twice)
    os.close(_open_without_links(str(tmp_path / "a" / "b"), makes=True))
    assert (tmp_path / "a" / "b").is_dir()
