"""Local runs of a trial without a master, with real child processes and small scripts."""

import json
import os
import sys
from pathlib import Path

import pytest
from tests.support.packages import listing, make_environment, make_wheel

from determined.errors import ConfigError, ContextError
from determined.local import run_local
from determined.local.python import choose

pytestmark = pytest.mark.budget(15, "imports torch in each local run")

CONFIG = """
entrypoint: {entrypoint}
searcher: {{name: random, metric: loss, max_trials: 3}}
reproducibility: {{experiment_seed: 5}}
resources: {{slots_per_trial: 8}}
environment: {{environment_variables: [MINE=1, DET_MASTER=evil]}}
hyperparameters: {{lr: {{type: double, minval: 0, maxval: 1}}, n: {{depth: 3}}}}
"""


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "ctx"
    folder.mkdir()
    return Path("ctx")


def run(
    context: Path,
    script: str,
    entrypoint: str = "python3 train.py",
    *,
    test_mode: bool = True,
    data: Path | None = None,
    slots: int | None = None,
    python: str | None = None,
    more: str = "",
) -> int:
    (context / "train.py").write_text(script)
    environ = {
        "PATH": os.environ["PATH"],
        "DET_MASTER": "http://elsewhere",
        "HOME": os.environ.get("HOME", "/"),
        "XDG_DATA_HOME": str(data or context.resolve().parent / "data"),
    }
    text = CONFIG.format(entrypoint=entrypoint) + more
    return run_local(
        text, name="c.yaml", context=context, test_mode=test_mode, environ=environ, slots=slots, python=python
    )


SHOW = """
import json, os, sys
import determined
print(json.dumps({"env": {k: v for k, v in os.environ.items() if k.startswith("DET_") or k == "MINE"},
                  "argv": sys.argv[1:], "python": sys.executable, "cwd": os.getcwd(),
                  "path": [p for p in os.environ["PYTHONPATH"].split(":")]}))
"""


def test_a_local_task_gets_its_arguments_and_variables(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    layer = "python3 -m determined.launch.torch_distributed python3 train.py 'a b' --"
    assert run(context, SHOW, layer) == 0
    captured = capfd.readouterr()
    output = json.loads(captured.out)
    assert output["argv"] == ["a b", "--"]
    assert output["env"]["DET_LOCAL_TEST_MODE"] == "1"
    assert output["env"]["MINE"] == "1"
    assert "DET_MASTER" not in output["env"]
    assert "DET_ALLOCATION_ID" not in output["env"]
    hparams = json.loads(output["env"]["DET_HPARAMS"])
    assert hparams["n"] == {"depth": 3}
    assert 0 <= hparams["lr"] < 1
    config = json.loads(output["env"]["DET_EXPERIMENT_CONFIG"])
    assert config["checkpoint_storage"]["type"] == "directory"
    assert config["max_restarts"] == 5
    assert 0 <= int(output["env"]["DET_TRIAL_SEED"]) < 2**31
    assert os.path.basename(output["cwd"]) == "context"
    assert len(output["path"]) == 1
    assert f"hyperparameters: {json.dumps(hparams)}" in captured.err
    assert "run without the launch layer: torch_distributed" in captured.err
    assert "slots_per_trial is 8; a local run uses one process" in captured.err
    assert captured.err.endswith("test passed\n")
    assert run(context, SHOW) == 0
    assert json.loads(json.loads(capfd.readouterr().out)["env"]["DET_HPARAMS"]) == hparams


INFO = """
import determined
info = determined.get_cluster_info()
print(info.trial.hparams["n"], info.trial.trial_seed, info.latest_checkpoint, info.user_data, info.task_type)
"""


def test_a_local_script_reads_its_trial_from_the_cluster_info(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(context, INFO) == 0
    captured = capfd.readouterr()
    seed = captured.err.partition("; seed: ")[2].partition("\n")[0]
    assert captured.out == f"{{'depth': 3}} {seed} None {{}} TRIAL\n"


MOUNTS = """[{host_path: DATA, container_path: inputs/data}, {host_path: DATA, container_path: /absent},
  {host_path: /nowhere, container_path: x}]"""


def test_bind_mounts_of_a_local_run_are_linked_or_named(
    context: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("seen")
    mounts = MOUNTS.replace("DATA", str(tmp_path / "data"))
    (context / "train.py").write_text("print(open('inputs/data/a.txt').read())")
    text = f"{CONFIG.format(entrypoint='python3 train.py')}\nbind_mounts: {mounts}"
    assert run_local(text, name="c.yaml", context=context, test_mode=True) == 0
    captured = capfd.readouterr()
    assert captured.out == "seen\n"
    assert f"bind_mounts: {tmp_path}/data is not mounted at /absent in a local run" in captured.err
    assert "bind_mounts: /nowhere does not exist on this machine" in captured.err


GROUP = """
import torch.distributed as dist
dist.init_process_group("gloo")
print(dist.get_rank(), dist.get_world_size())
"""


def test_a_local_script_for_torch_distributed_runs_as_a_group_of_one(
    context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    assert run(context, GROUP, "python3 -m determined.launch.torch_distributed python3 train.py") == 0
    assert capfd.readouterr().out == "0 1\n"


def test_an_exception_of_a_local_run_names_the_users_line(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = "import json\ndef f():\n    json.loads('{')\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    f()\n"
    assert run(context, script) == 1
    err = capfd.readouterr().err
    assert 'File "ctx/train.py", line 3, in f' in err
    assert err.splitlines()[-2].startswith("ctx/train.py:3: json.decoder.JSONDecodeError: ")
    assert err.splitlines()[-1] == "test failed: it exited with code 1"


@pytest.mark.parametrize(
    ("script", "entrypoint", "verdict"),
    [
        ("import sys; sys.exit(3)", "python3 train.py", "test failed: it exited with code 3"),
        ("import os; os.kill(os.getpid(), 9)", "[python3, train.py]", "test failed: it was killed by signal 9"),
        ("", "python3 nothing.py", "test failed: it exited with code 2"),
        ("", "[./nothing]", "cannot start the entrypoint: ./nothing"),
        ("", "nothing:Trial", "there is no module nothing in"),
        ("", "train:Trial", "train has no class Trial"),
    ],
)
def test_a_failed_local_run_exits_with_1_and_a_verdict(
    context: Path, capfd: pytest.CaptureFixture[str], script: str, entrypoint: str, verdict: str
) -> None:
    assert run(context, script, entrypoint) == 1
    assert verdict in capfd.readouterr().err


@pytest.mark.torch
@pytest.mark.parametrize("name", ["torch_distributed", "core_api"])  # horovod has the same trial as torch_distributed
def test_the_launcher_examples_pass_a_local_test(capfd: pytest.CaptureFixture[str], name: str) -> None:
    """tests/e2e/launchers/test_example_launchers.py does the same with a DeepSpeedTrial."""
    folder = Path(__file__).parents[3] / "examples" / "launchers"
    text = (folder / f"{name}.yaml").read_text()
    assert run_local(text, name=f"{name}.yaml", context=folder, test_mode=True) == 0
    assert capfd.readouterr().err.splitlines()[-1] == "test passed"


def test_a_local_run_without_test_mode_stores_checkpoints(
    context: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(context, SHOW, test_mode=False) == 0
    captured = capfd.readouterr()
    environ = json.loads(captured.out)["env"]
    assert "DET_LOCAL_TEST_MODE" not in environ
    storage = json.loads(environ["DET_EXPERIMENT_CONFIG"])["checkpoint_storage"]
    folder = tmp_path / "data" / "detent" / "local" / "checkpoints"
    assert storage["container_path"] == str(folder)
    assert f"checkpoints are stored in {folder}\n" in captured.err
    assert captured.err.endswith("trial passed\n")


STORE = """
from determined import core
import determined as det, os, json
storage = json.loads(os.environ["DET_EXPERIMENT_CONFIG"])["checkpoint_storage"]
with core.init(checkpoint_storage=storage) as context, context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
    (path / "weights").touch()
"""


def test_a_local_run_leaves_no_checkpoints_in_its_context(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(context)
    assert run(Path(), STORE, test_mode=False, data=tmp_path / "data") == 0
    assert [path.name for path in Path().iterdir()] == ["train.py"]
    assert list((tmp_path / "data").rglob("weights"))


VALIDATE = """
import os
from determined import core
assert os.environ["DET_TEST_MODE"] == "1"
with core.init() as context:
    for step in range(1, 4):
        context.train.report_training_metrics(step, {"loss": 1.0})
        context.train.report_validation_metrics(step, {"loss": 1.0})
        print("validated", step)
"""


def test_test_mode_stops_a_script_after_its_first_validation(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(context, VALIDATE) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("the script was stopped after its first validation\ntest passed\n")
    assert run(context, VALIDATE.replace('assert os.environ["DET_TEST_MODE"] == "1"', ""), test_mode=False) == 0
    assert capfd.readouterr().out == "validated 1\nvalidated 2\nvalidated 3\n"


def test_test_mode_notes_that_a_script_reported_no_validation(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(context, "print(1)") == 0
    assert "the script ended by itself; it reported no validation" in capfd.readouterr().err


LAYER = "python3 -m determined.launch.torch_distributed python3 train.py"
RANKS = """
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
"""


@pytest.mark.torch
def test_a_local_run_with_two_slots_runs_the_launch_layer_with_two_processes(
    context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(context, RANKS, LAYER, slots=2) == 0, capfd.readouterr().err
    captured = capfd.readouterr()
    assert sorted(line.partition("] ")[2] for line in captured.out.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert "without the launch layer" not in captured.err
    assert "a local run uses one process" not in captured.err


ROLES = """{"roles": [{"name": "a", "slots": 1, "count": 2, "command": ["python3", "train.py"]}]}"""


def test_a_local_run_of_several_programs_keeps_their_layer(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (context / "roles.json").write_text(ROLES)
    line = "python3 -m determined.launch.roles roles.json"
    shared = "the roles ask for 2 slots and the trial has 1 slot"
    for slots in (None, 2):
        assert run(context, RANKS, line, slots=slots) == 0, capfd.readouterr().err
        captured = capfd.readouterr()
        assert sorted(line.partition("] ")[2] for line in captured.out.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
        assert (shared in captured.err) == (slots is None)


def test_a_local_run_with_slots_needs_a_launch_layer_and_at_least_one_slot(context: Path) -> None:
    with pytest.raises(ConfigError, match="no launch layer"):
        run(context, RANKS, slots=2)
    with pytest.raises(ConfigError, match="1 slot or more"):
        run(context, RANKS, LAYER, slots=0)


def test_a_local_run_with_an_old_python_is_refused(context: Path, tmp_path: Path) -> None:
    stub = tmp_path / "old" / "python3"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho 3 8\n")
    stub.chmod(0o755)
    with pytest.raises(ConfigError) as refused:
        run(context, SHOW, python=str(stub))
    assert refused.value.message == f"{stub} is version 3.8; tasks need 3.10 or newer"


def test_a_local_run_leaves_out_the_files_that_detignore_names(
    context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (context / ".detignore").write_text("secret.txt")
    (context / "secret.txt").touch()
    (context / "startup-hook.sh").write_text("exit 1")
    assert run(context, "open('secret.txt')") == 1
    err = capfd.readouterr().err
    assert "ctx/train.py:1: FileNotFoundError" in err
    assert ".detignore leaves secret.txt out of the context (line 1: secret.txt)" in err
    assert "startup-hook.sh is not run in a local run" in err


def test_a_local_run_says_that_nothing_asks_its_script_to_leave(
    context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(context, "", more="\npause: {signal: TERM}\n") == 0
    assert "pause: nothing asks a local run to leave; try the script with kill -TERM" in capfd.readouterr().err


def test_an_invalid_configuration_or_folder_starts_no_local_run(context: Path) -> None:
    with pytest.raises(ConfigError):
        run_local("entrypoint: 3", name="c.yaml", context=context, test_mode=True)
    with pytest.raises(ContextError):
        run_local(CONFIG.format(entrypoint="a"), name="c", context=context / "none", test_mode=True)


def test_the_python_of_a_local_run_is_chosen_in_order(tmp_path: Path) -> None:
    for name in ("one", "two"):
        program = tmp_path / name / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh")
        program.chmod(0o755)
    one, two = tmp_path / "one", tmp_path / "two"
    environ = {"VIRTUAL_ENV": str(two)}
    assert choose(sys.executable, f"venv:{one}", environ) == sys.executable
    assert choose(None, f"venv:{one}", environ) == str(one / "bin" / "python")
    assert choose(None, "some/image:1", environ) == str(two / "bin" / "python")
    assert choose(None, None, {}) == sys.executable
    with pytest.raises(ConfigError, match="no such program"):
        choose("no-such-python", None, {})
    with pytest.raises(ConfigError, match="is not a Python environment"):
        choose(None, f"venv:{tmp_path}", {})


def test_packages_of_the_configuration_are_added_to_the_python_of_a_local_run(
    context: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make_wheel(tmp_path / "wheels", "tiny", "1.0")
    base = make_environment(tmp_path / "base", make_wheel(tmp_path / "wheels", "other", "2.0"))
    before = listing(base)
    (context / "train.py").write_text("import other, tiny; print('added', tiny.version, other.version)")
    text = CONFIG.format(entrypoint="python3 train.py").replace("environment: {", "environment: {pip: [tiny], ")
    environ = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    environ |= {"XDG_DATA_HOME": str(tmp_path / "data"), "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    for _ in range(2):
        exit_code = run_local(
            text,
            name="c.yaml",
            context=context,
            test_mode=True,
            environ=environ,
            slots=None,
            python=str(base / "bin" / "python"),
        )
        captured = capfd.readouterr()
        assert exit_code == 0, captured.err
        assert "added 1.0 2.0" in captured.out
    assert "is complete already" in captured.err  # built once
    assert listing(base) == before


def test_a_configuration_too_long_for_a_variable_reaches_a_local_run_in_a_file(
    context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = (
        "from determined import pytorch as p; s = p._setup.Setup.make(None, None); print(len(s.config['data']['x']))"
    )
    (context / "train.py").write_text(script)
    text = CONFIG.format(entrypoint="python3 train.py") + f"data: {{x: {'x' * (300 << 10)}}}\n"
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    assert run_local(text, name="c.yaml", context=context, test_mode=True, environ=environ) == 0, capfd.readouterr()
    assert capfd.readouterr().out == f"{300 << 10}\n"
