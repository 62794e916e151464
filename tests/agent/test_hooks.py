"""The environment of a task at its start, with real tasks of a real agent."""

import functools
import json
import os
import venv
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import agent_on, is_done, make_context, make_desired, outcome
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.free_ports import free_port
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, ContextRef
from determined_agent import devices
from determined_agent.host_access.mount_probe import can_mount
from determined_agent.settings import base_environment

SHOW = ["python3", "-c", "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))"]


async def environment_of(tmp_path: Path, **spec: Any) -> tuple[dict[str, str], str, list[str]]:
    exit_, lines, notes = await outcome(tmp_path, SHOW, **spec)
    assert exit_.code == 0, exit_
    environment, workdir = json.loads(lines[-1])
    return environment, workdir, notes


def make_venv(folder: Path, *, official: bool) -> Path:
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    if official:
        (site / "determined-9.9.dist-info").mkdir()
        (site / "determined-9.9.dist-info" / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: determined\nVersion: 9.9\n"
        )
        (site / "determined").mkdir()
        (site / "determined" / "__init__.py").write_text("")
    return folder


async def test_a_task_gets_the_users_and_the_clusters_variables_and_none_of_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    environment, workdir, notes = await environment_of(
        tmp_path,
        environment={"DET_TRIAL_ID": "7", "C10D_PORT": "1234"},
        user_environment=[
            "A=1",
            "A=2",
            "E=x=y",
            "DET_MASTER=evil",
            "C10D_PORT=1",
            "PYTHONPATH=/mine",
            "DET_LOG_METRICS=false",
        ],
    )
    assert (environment["A"], environment["E"], environment["C10D_PORT"]) == ("2", "x=y", "1234")
    assert environment["DET_MASTER"].startswith("http://127.0.0.1:")
    assert "DATABASE_PASSWORD" not in environment
    assert "secret" not in environment.values()
    assert environment["PYTHONUNBUFFERED"] == "1"
    assert workdir == environment["DET_WORKDIR"] == environment["DET_RUN_DIR"] + "/workdir"
    assert environment["PATH"].split(":")[0] == environment["DET_RUN_DIR"] + "/venv/bin"
    first, second = environment["PYTHONPATH"].split(":")
    assert sorted(path.name for path in Path(first).iterdir()) == ["determined", "determined_launch"]
    assert second == "/mine"
    assert environment["DET_LOG_METRICS"] == "false"
    assert any("DET_MASTER, C10D_PORT" in note for note in notes)
    assert any("library: determined of this cluster" in note for note in notes)


async def test_the_chief_of_a_trial_gets_the_wandb_run_of_the_trial(tmp_path: Path) -> None:
    trial = {"DET_CLUSTER_ID": "c", "DET_TRIAL_ID": "7", "DET_EXPERIMENT_ID": "2"}
    chief_variables = {"WANDB_RUN_ID": "trial-7-c", "WANDB_RESUME": "allow", "WANDB_RUN_GROUP": "experiment-2-c"}

    async def variables(folder: str, **spec: Any) -> dict[str, str]:
        environment, _, _ = await environment_of(tmp_path / folder, environment=trial, **spec)
        return {name: value for name, value in environment.items() if name.startswith("WANDB_")}

    assert await variables("chief") == chief_variables
    assert await variables("other", rank=1) == {}
    assert await variables("named", user_environment=["WANDB_RUN_ID=mine"]) == {
        "WANDB_RUN_ID": "mine",
        "WANDB_RUN_GROUP": "experiment-2-c",
    }


async def test_slots_share_the_cores_unless_the_user_sets_omp_num_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cores", lambda: 12)
    environment, _, _ = await environment_of(tmp_path / "a")
    assert environment["OMP_NUM_THREADS"] == "6"
    environment, _, _ = await environment_of(tmp_path / "two ranks", slots=[0, 1])
    assert environment["OMP_NUM_THREADS"] == "6"
    environment, _, _ = await environment_of(tmp_path / "b", user_environment=["OMP_NUM_THREADS=7"])
    assert environment["OMP_NUM_THREADS"] == "7"


async def test_a_task_inherits_omp_num_threads_of_its_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cores", lambda: 12)
    settings = {"base_environment": base_environment({"OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]})}
    environment, _, _ = await environment_of(tmp_path / "a", settings=settings)
    assert environment["OMP_NUM_THREADS"] == "1"
    environment, _, _ = await environment_of(tmp_path / "b", settings=settings, user_environment=["OMP_NUM_THREADS=7"])
    assert environment["OMP_NUM_THREADS"] == "7"


async def test_a_venv_image_chooses_an_environment_and_any_other_is_ignored_with_a_note(tmp_path: Path) -> None:
    folder = make_venv(tmp_path / "venv", official=False)
    environment, _, _ = await environment_of(tmp_path / "a", image=f"venv:{folder}")
    assert environment["VIRTUAL_ENV"] == environment["DET_RUN_DIR"] + "/venv"
    assert environment["DET_PYTHON_EXECUTABLE"] == environment["VIRTUAL_ENV"] + "/bin/python"
    assert environment["PATH"].split(":")[2] == str(folder / "bin")
    _, _, notes = await environment_of(tmp_path / "b", image="some/image:1")
    assert any("some/image:1 is ignored" in note for note in notes)
    exit_, _, _ = await outcome(tmp_path / "c", "true", image=f"venv:{tmp_path}/none")
    assert exit_.kind == "failed_to_start"
    assert "none/bin/python" in exit_.message


async def test_an_installed_library_is_used_and_gets_its_own_paths(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("this machine allows no namespaces")
    folder = make_venv(tmp_path / "venv", official=True)
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints")}
    script = (
        "import determined, os; print(determined.__file__); open('/determined_shared_fs/kept', 'w'); print(os.getcwd())"
    )
    desired: dict[str, Any] = {"image": f"venv:{folder}", "checkpoint_storage": storage}
    exit_, lines, notes = await outcome(tmp_path / "a", ["python", "-c", script], **desired)
    assert exit_.code == 0, (exit_, lines)
    assert lines == [f"{next(folder.glob('lib/*/site-packages'))}/determined/__init__.py", "/run/determined/workdir"]
    assert (tmp_path / "checkpoints" / "kept").exists()
    assert any("determined 9.9" in note for note in notes)
    environment, _, _ = await environment_of(tmp_path / "b", harness="ours", **desired)
    assert "harness" in environment["PYTHONPATH"]
    assert environment["DET_SHARED_FS"] == storage["host_path"]


async def test_the_context_is_mounted_where_an_installed_library_copies_the_model_definition_from(
    tmp_path: Path,
) -> None:
    if not can_mount():
        pytest.skip("this machine allows no namespaces")
    master = FakeLinkMaster()
    context = make_context(master, file="text")
    image = f"venv:{make_venv(tmp_path / 'venv', official=True)}"
    exit_, lines, _ = await outcome(
        tmp_path / "a", "cat /run/determined/train/model/file", master=master, image=image, context=context
    )
    assert (exit_.code, lines) == (0, ["text"])
    assert not list(tmp_path.glob("a/data/runs/*/run/train/model"))


async def test_harness_installed_without_an_installed_library_fails_the_start(tmp_path: Path) -> None:
    folder = make_venv(tmp_path / "venv", official=False)
    exit_, _, notes = await outcome(tmp_path, "true", image=f"venv:{folder}", harness="installed")
    assert exit_.kind == "failed_to_start"
    assert "needs the package determined" in exit_.message
    assert exit_.message in notes


async def test_the_context_of_several_containers_is_fetched_once(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, file="text", folder__deep="more")
    containers = [make_desired("cat file folder/deep", context=context) for _ in range(3)]
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(*containers)
        for desired in containers:
            await eventually(functools.partial(is_done, master, desired))
        await eventually(lambda: not list(tmp_path.glob("runs/*/run/workdir")))
    assert [master.text_of(desired.container_id) for desired in containers] == [["textmore"]] * 3
    assert master.fetched == [context.hash]


async def test_a_context_that_escapes_its_folder_or_is_gone_fails_the_start(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, **{"..__evil": "x"})
    exit_, _, _ = await outcome(tmp_path / "a", "true", master=master, context=context)
    assert exit_.kind == "failed_to_start"
    assert not list(tmp_path.rglob("evil"))
    exit_, _, _ = await outcome(tmp_path / "b", "true", context=ContextRef(hash="0" * 64, size=1))
    assert exit_.kind == "failed_to_start"
    assert "submit the experiment again" in exit_.message


async def test_a_context_that_arrives_damaged_is_fetched_again(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, file="good")
    good, master.contexts[context.hash] = master.contexts[context.hash], b"damaged"
    desired = make_desired("cat file", context=context)
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await eventually(lambda: master.fetched)
        master.contexts[context.hash] = good
        await eventually(lambda: master.text_of(desired.container_id) == ["good"])


async def test_startup_hooks_are_sourced_in_order_and_may_export(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, startup_hook_sh="export A=${A}user\ncd /\n")
    exit_, lines, _ = await outcome(
        tmp_path, "echo $A; pwd; echo $-", master=master, context=context, startup_hook="export A=pool-"
    )
    assert exit_.code == 0
    value, folder, switches = lines
    assert value == "pool-user"
    assert folder.endswith("/run/workdir")
    assert "x" not in switches


async def test_a_failing_startup_hook_ends_the_task_with_its_exit_code(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, startup_hook_sh="(exit 9)\n")
    exit_, lines, _ = await outcome(tmp_path, "echo never", master=master, context=context)
    assert (exit_.kind, exit_.code) == ("exited", 9)
    assert "never" not in lines


async def test_a_bind_mount_is_mounted_or_refused_but_never_ignored(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("text")
    mount = {"host_path": str(source), "container_path": "/b/c"}
    exit_, lines, _ = await outcome(tmp_path / "a", "cat /b/c/file; echo", bind_mounts=[mount])
    if can_mount():
        assert (exit_.code, lines) == (0, ["text"])
    else:
        assert exit_.kind == "failed_to_start"
    same = {"host_path": str(source), "container_path": str(source)}
    exit_, lines, _ = await outcome(tmp_path / "b", f"cat {source}/file; echo", bind_mounts=[same])
    assert (exit_.code, lines) == (0, ["text"])
    missing = {"host_path": "/no/such", "container_path": "/b"}
    exit_, _, _ = await outcome(tmp_path / "c", "true", bind_mounts=[missing])
    assert exit_.kind == "failed_to_start"
    assert "/no/such does not exist" in exit_.message


LISTEN = (
    "import os, socket; listener = socket.socket(); listener.bind(('', int(os.environ['DET_PROXY_PORT_{port}']))); "
    "listener.listen(); print(listener.getsockname()[1], flush=True); "
    "os.path.exists('{folder}/first') or (open('{folder}/first', 'w').close(), os.read(os.open('{folder}/gate', 0), 1))"
)


async def test_two_tasks_with_the_same_proxy_port_get_different_ports(tmp_path: Path) -> None:
    port = free_port()
    os.mkfifo(tmp_path / "gate")
    script = LISTEN.format(port=port, folder=tmp_path)
    containers = [make_desired(["python3", "-c", script], proxy_ports=[port]) for _ in range(2)]
    master = FakeLinkMaster()
    async with serving(master.app()) as url, agent_on(url, tmp_path / "data"):
        await master.set_desired(containers[0])
        await eventually(lambda: master.text_of(containers[0].container_id))
        await master.set_desired(*containers)
        await eventually(functools.partial(is_done, master, containers[1]))
        (tmp_path / "gate").write_text("x")
        await eventually(functools.partial(is_done, master, containers[0]))
    first, second = ([int(line) for line in master.text_of(desired.container_id)] for desired in containers)
    assert first == [port]
    assert second != [port]
    assert len(second) == 1
    notes = master.text_of(containers[1].container_id, "agent")
    assert any(f"port {port} of this machine is taken; listen on {second[0]} instead" in line for line in notes)


async def test_info_files_describe_the_trial_and_the_cluster(tmp_path: Path) -> None:
    _, lines, _ = await outcome(
        tmp_path,
        "cat $DET_RUN_DIR/info/trial.json; echo; cat $DET_RUN_DIR/info/cluster.json; stat -c %a $DET_RUN_DIR",
        environment={"DET_TRIAL_ID": "7", "DET_EXPERIMENT_ID": "3", "DET_HPARAMS": '{"lr": 0.1}'},
    )
    trial = json.loads(lines[0])
    assert (trial["trial_id"], trial["experiment_id"], trial["hparams"]) == (7, 3, {"lr": 0.1})
    assert '"allocation_id": "1.task.1"' in lines[1]
    assert lines[1].endswith("700")


READ_CONFIG = (
    "import os; from determined.core import get_cluster_info as info; from determined_launch import settings; "
    "trial = info().trial; print(len(trial._config['data']['x']), len(trial.hparams['x']), "
    "settings.read(os.environ).hang_seconds, 'DET_EXPERIMENT_CONFIG' in os.environ)"
)


def large_environment(size: int) -> dict[str, str]:
    config = {"data": {"x": "x" * size}, "launch": {"hang_timeout": "7s"}}
    return {
        "DET_TRIAL_ID": "7",
        "DET_EXPERIMENT_CONFIG": json.dumps(config),
        "DET_HPARAMS": json.dumps({"x": "x" * size}),
    }


async def test_a_configuration_too_long_for_a_variable_reaches_the_task_in_a_file(tmp_path: Path) -> None:
    argv = ["python3", "-c", READ_CONFIG]
    exit_, lines, _ = await outcome(tmp_path / "a", argv, environment=large_environment(600 << 10))
    assert (exit_.code, lines) == (0, [f"{600 << 10} {600 << 10} 7.0 False"]), exit_
    exit_, lines, _ = await outcome(tmp_path / "b", argv, environment=large_environment(100 << 10))
    assert (exit_.code, lines) == (0, [f"{100 << 10} {100 << 10} 7.0 True"]), exit_


async def test_a_variable_or_configuration_that_is_too_long_fails_the_start_and_is_named(tmp_path: Path) -> None:
    exit_, _, _ = await outcome(tmp_path / "a", "true", user_environment=["LONG=" + "x" * (200 << 10)])
    assert exit_.kind == "failed_to_start"
    assert "environment_variables: LONG is 200 KiB long" in exit_.message
    if can_mount():
        image = f"venv:{make_venv(tmp_path / 'venv', official=True)}"
        exit_, _, _ = await outcome(tmp_path / "b", "true", image=image, environment=large_environment(600 << 10))
        assert exit_.kind == "failed_to_start"
        assert "the experiment configuration is 600 KiB long, and the installed determined library" in exit_.message


async def test_the_exit_names_the_rank_that_failed(tmp_path: Path) -> None:
    record = {"rank": 1, "code": None, "signal": 9, "host": "h", "last_lines": ["a", "b"]}
    script = f"cd $DET_RUN_DIR/exits; echo '{json.dumps(record)}' > rank-1.json; exit 1"
    exit_, _, notes = await outcome(tmp_path, script)
    assert exit_.message == "rank 1 on h was killed by signal 9 (SIGKILL):\na\nb"
    assert exit_.ranks[0].last_lines == ["a", "b"]
    assert notes[-3:] == ["rank 1 on h was killed by signal 9 (SIGKILL):", "a", "b"]


async def test_a_container_that_is_stopped_while_its_context_is_fetched_never_starts(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    master.contexts["0" * 64] = b"never the right bytes"
    desired = make_desired("true", context=ContextRef(hash="0" * 64, size=1))
    async with serving(master.app()) as url, agent_on(url, tmp_path) as daemon:
        await master.set_desired(desired)
        await eventually(lambda: master.fetched)
        await master.set_desired(desired.model_copy(update={"state": "stopped", "spec": None}))
        await eventually(functools.partial(is_done, master, desired))
        assert daemon.reported.containers[0].exit == ContainerExit(kind="killed")


@pytest.mark.parametrize("variables", [[], ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1"]])
async def test_a_trial_with_the_official_library_and_a_strict_torch_is_warned(
    tmp_path: Path, variables: list[str]
) -> None:
    folder = make_venv(tmp_path / "venv", official=True)
    metadata = next(folder.glob("lib/python*/site-packages")) / "torch-2.13.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    trial = {"DET_TRIAL_ID": "7"}
    _, _, notes = await environment_of(
        tmp_path / "a", image=f"venv:{folder}", environment=trial, user_environment=variables
    )
    assert any("pause and resume are as in determined 9.9" in note for note in notes)
    assert any("a paused PyTorchTrial fails when it is activated" in note for note in notes) is not bool(variables)
    _, _, notes = await environment_of(tmp_path / "b", image=f"venv:{folder}", user_environment=variables)
    assert not any("pause and resume" in note or "PyTorchTrial" in note for note in notes)
