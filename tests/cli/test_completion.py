"""Completion scripts in their shells: bash, zsh in a terminal, and fish."""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

from .conftest import Det, FakeMaster

ZSHRC = Path(__file__).with_name("completion_rc.zsh")
SECONDS = 60
Complete = Callable[..., list[str]]


def in_bash(script: Path, words: list[str], environment: Mapping[str, str]) -> str:
    typed = " ".join(map(repr, words))
    code = f'. "{script}"; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _det; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env=environment, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def in_bash_at_a_terminal(script: Path, line: str, environment: Mapping[str, str]) -> list[str]:
    """Returns what is offered when a person types a line and the key for completion: bash cuts it into words itself."""
    offered, profile = script.parent / "offered", script.parent / "bashrc"
    profile.write_text(
        f'. "{script}"\n_offer() {{ _det; printf "%s\\n" "${{COMPREPLY[@]}}" END >"{offered}"; }}\n'
        "complete -F _offer det\n"
    )
    master, terminal = pty.openpty()
    bash = subprocess.Popen(
        ["bash", "--rcfile", str(profile), "-i"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**environment, "TERM": "dumb"},
        start_new_session=True,
    )
    try:
        os.write(master, f"{line}\t".encode())
        wait_until(lambda: offered.exists() and "END" in offered.read_text())
    finally:
        bash.kill()
        bash.wait()
        os.close(terminal)
        os.close(master)
    return offered.read_text().split()[:-1]


def in_zsh(script: Path, words: list[str], environment: Mapping[str, str]) -> str:
    folder = script.parent
    shutil.copy(ZSHRC, folder / ".zshrc")
    capture = folder / "offered"
    capture.write_text("")
    variables = {"ZDOTDIR": str(folder), "SCRIPT": str(script), "CAPTURE": str(capture), "LINE": " ".join(words)}
    master, terminal = pty.openpty()
    try:
        subprocess.run(
            ["zsh", "-d", "-i"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**environment, **variables, "TERM": "dumb"},
            cwd=folder,
            start_new_session=True,
            timeout=SECONDS,
            check=True,
        )
    finally:
        os.close(terminal)
        os.close(master)
    return capture.read_text()


def in_fish(script: Path, words: list[str], environment: Mapping[str, str]) -> str:
    code = f"source '{script}'; complete -C '{' '.join(words)}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], capture_output=True, text=True, env=environment, timeout=SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    return "\n".join(line.partition("\t")[0] for line in done.stdout.splitlines())


RUNS = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


@pytest.fixture(params=RUNS)
def shell(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: sh scripts/install_test_tools.sh")
    return name


@pytest.fixture
def complete(shell: str, fake: FakeMaster, det: Det, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Returns a function that completes the last word with a real ``det`` and a time limit for a busy machine."""
    folder = tmp_path / "shell"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "det"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m determined_cli "$@"\n')
    program.chmod(0o755)
    script = folder / "script"
    script.write_text(det("completion", shell).out)
    monkeypatch.setenv("DET_COMPLETION_SECONDS", "20")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(folder)

    def run(*words: str) -> list[str]:
        offered = RUNS[shell](script, ["det", *words], dict(os.environ)).split()
        return sorted(word for word in offered if word.startswith(words[-1]))

    return run


def test_nouns_verbs_values_and_flags_are_completed(complete: Complete) -> None:
    assert complete("exp") == ["experiment"]
    assert complete("e", "list-") == ["list-checkpoints", "list-trials"]
    assert {"add", "remove"} <= set(complete("e", "label", ""))
    assert complete("completion", "z") == ["zsh"]
    assert complete("up", "--de") == ["--detach"]
    assert complete("e", "set", "max") == ["max-concurrent-trials", "max-slots", "max-trials"]
    assert complete("e", "set", "gc-policy", "--save-e") == ["--save-experiment-best"]


def test_options_before_the_noun_are_skipped_in_completion(complete: Complete) -> None:
    assert complete("-m", "user", "t", "logs", "--fo") == ["--follow"]
    assert "describe" in complete("--user", "ann", "e", "d")
    assert complete("-m", "user", "exp") == ["experiment"]
    assert complete("--vers") == ["--version"]


@pytest.mark.parametrize("option", ["-m http://127.0.0.1:8080", "--master=http://127.0.0.1:8080"])
def test_bash_completes_behind_an_address_with_a_port(det: Det, tmp_path: Path, option: str) -> None:
    script = tmp_path / "script"
    script.write_text(det("completion", "bash").out)
    assert in_bash_at_a_terminal(script, f"det {option} e label a", dict(os.environ)) == ["add"]


def test_ids_of_the_master_are_completed(complete: Complete, fake: FakeMaster) -> None:
    fake.answers["GET /api/v1/experiments"] = {"experiments": [{"id": 12}, {"id": 3}]}
    fake.answers["GET /api/v1/experiments/12/trials"] = {"trials": [{"id": 40}]}
    fake.answers["GET /api/v1/experiments/3/trials"] = {"trials": [{"id": 7}]}
    assert complete("t", "logs", "") == ["40", "7"]
    assert complete("e", "set", "name", "1") == ["12"]
    fake.answers.clear()
    assert complete("t", "logs", "4") == ["40"]  # from the cache
    url = f"http://127.0.0.1:{free_port()}"
    assert complete("-m", url, "t", "logs", "4") == []  # the cache has no ids of this master


def test_paths_are_completed_by_the_shell(complete: Complete, shell: str) -> None:
    Path("config.yaml").touch()
    # Bash itself completes paths if the function offers nothing.
    assert complete("e", "create", "conf") == ([] if shell == "bash" else ["config.yaml"])


def test_a_name_that_a_shell_would_run_is_neither_run_nor_offered(complete: Complete, fake: FakeMaster) -> None:
    names = ["$(touch ran)", "`touch ran`", "ann"]
    fake.answers["GET /api/v1/users"] = {"users": [{"id": 1, "username": name} for name in names]}
    assert complete("user", "activate", "") == ["ann"]
    assert not Path("ran").exists()
