"""The start of ``det``: nouns and verbs, help, typing errors, completion, and the modules that it imports."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import determined
import determined_cli
from determined_cli.command_table import NOUNS
from determined_cli.main import main

from .conftest import Det, FakeMaster

COSTLY = ("pydantic", "yaml", "http", "ssl", "email", "typing", "json", "pathspec", "zstandard", "determined.config")


def loaded(*words: str) -> set[str]:
    """Returns the modules that a command imports, in its own interpreter."""
    code = (
        "import sys; from determined_cli.main import main; main(sys.argv[1:]); sys.stderr.write('|'.join(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-S", "-c", code, *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.strip().split("\n")[-1].split("|"))


def test_the_version_flag_imports_no_module_of_determined_and_no_slow_one() -> None:
    modules = loaded("--version")
    assert {name for name in modules if name.partition(".")[0] == "determined"} == set()
    assert not {*COSTLY, "argparse", "re"} & modules


def test_help_imports_no_slow_module() -> None:
    modules = loaded("experiment", "create", "--help")
    assert not {*COSTLY, "shutil", "determined_cli.experiment.create"} & modules


def test_the_version_of_the_cli_equals_the_version_of_the_library() -> None:
    assert determined_cli.__version__ == determined.__version__


def test_version_flag_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"det {determined.__version__}\n"


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_prints_its_own_help(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([noun, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: det {noun}")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["experimnt"], 'did you mean "experiment"?'),
        (["e", "creat"], 'did you mean "create"?'),
        (["e", "label", "ad"], 'did you mean "add"?'),
        (["-m"], "needs a value"),
        (["--what"], "unknown option"),
        (["e", "list", "--what"], "unrecognized arguments"),
        (["e", "describe", "x"], "invalid int value"),
    ],
)
def test_a_usage_error_exits_with_2_and_names_what_is_wrong(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert text in capsys.readouterr().err


def test_help_prints_an_overview_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "experiment, e" in capsys.readouterr().out
    assert main([]) == 2


def test_up_and_down_parse_their_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import ModuleType

    calls: list[Any] = []
    module = ModuleType("determined_cli.up.local_cluster")
    vars(module).update(run_up=calls.append, run_down=calls.append)
    monkeypatch.setitem(sys.modules, "determined_cli.up.local_cluster", module)
    flags = "--host 0.0.0.0 --port 0 --data /d --slots 2 --task-python py --grace 3 --detach".split()  # noqa: SIM905
    assert main(["up", *flags]) == 0
    assert main(["down", "--data", "/d", "--now"]) == 0
    up, down = calls
    assert (up.host, up.port, up.data, up.slots, up.task_python, up.grace, up.detach) == (
        "0.0.0.0",
        0,
        "/d",
        2,
        "py",
        3.0,
        True,
    )
    assert (down.data, down.now) == ("/d", True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_and_name_the_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "list-checkpoints" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.fixture
def completed(fake: FakeMaster, det: Det, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Returns a function that completes a line in bash with a real ``det`` and a time limit for a busy machine."""
    monkeypatch.setenv("DET_COMPLETION_SECONDS", "20")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "det"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m determined_cli "$@"\n')
    program.chmod(0o755)
    script = det("completion", "bash").out

    def complete(*words: str) -> list[str]:
        typed = " ".join(map(repr, (str(program), *words)))
        code = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _det; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", f"{script}\n{code}"], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return complete


def test_bash_completion_offers_ids_of_the_master(fake: FakeMaster, completed: Callable[..., list[str]]) -> None:
    fake.answers.update(
        {
            "GET /api/v1/experiments": {"experiments": [{"id": 12}, {"id": 3}]},
            "GET /api/v1/experiments/12/trials": {"trials": [{"id": 40}]},
            "GET /api/v1/experiments/3/trials": {"trials": [{"id": 7}]},
            "GET /api/v1/agents": {"agents": [{"id": "box"}]},
            "GET /api/v1/commands": {"commands": [{"id": "3f2b"}]},
            "GET /api/v1/users": {"users": [{"username": "ann"}]},
        }
    )
    assert completed("e", "logs", "") == ["12", "3"]
    assert completed("e", "set", "name", "1") == ["12"]
    assert completed("t", "logs", "") == ["40", "7"]
    assert completed("agent", "disable", "b") == ["box"]
    assert completed("cmd", "kill", "") == ["3f2b"]
    assert completed("user", "rename", "") == ["ann"]
    assert {request.authorization for request in fake.requests} == {"Bearer T"}
    fake.answers.clear()
    assert completed("e", "logs", "") == ["12", "3"]  # from the cache
    assert completed("e", "create", "") == []  # the shell completes paths
    assert completed("t", "download", "7", "-o", "") == []


def test_completion_of_ids_prints_no_error(fake: FakeMaster, completed: Callable[..., list[str]]) -> None:
    fake.answers["GET /api/v1/experiments"] = (500, {"error": {"error": "broken"}})
    assert completed("e", "logs", "") == []
    assert completed("-m", "http://127.0.0.1:1", "e", "logs", "") == []


def test_completion_of_ids_offers_none_if_the_master_does_not_answer(
    completed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_COMPLETION_SECONDS", "0.05")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        assert completed("-m", f"http://127.0.0.1:{silent.getsockname()[1]}", "e", "logs", "") == []
