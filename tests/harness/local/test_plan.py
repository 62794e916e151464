"""The command of a local run for every form of entrypoint."""

import pytest

from determined.errors import ConfigError
from determined.local.plan import make

LAYER = "python3 -m determined.launch"
HARNESS = "PY -m determined.exec.harness"


@pytest.mark.parametrize(
    ("entrypoint", "expected"),
    [
        (f"{LAYER}.torch_distributed --trial m:C", f"{HARNESS} m:C"),
        (f"{LAYER}.torch_distributed --nnodes 1 -- --trial=m:C", f"{HARNESS} m:C"),
        (f"nice -n 5 {LAYER}.autohorovod --trial m:C", f"nice -n 5 {HARNESS} m:C"),
        (f"./prep.sh && {LAYER}.deepspeed --trial m:C 2>&1 | tee log", f"./prep.sh && {HARNESS} m:C 2>&1 | tee log"),
        (f"A=1 {LAYER}.horovod --x -- train.py '--' \"a b\" $HOME", "A=1 PY train.py '--' \"a b\" $HOME"),
        (f"{LAYER}.deepspeed {LAYER}.torch_distributed python3 t.py", "python3 t.py"),
        ("python3 -u -m determined.launch.torch_distributed -- t.py", "PY t.py"),
        (f"(cd x; {LAYER}.torch_distributed t.py)", "(cd x; PY t.py)"),
        (
            "python3 train.py; echo 'python3 -m determined.launch.x'",
            "python3 train.py; echo 'python3 -m determined.launch.x'",
        ),
        ("python3 train.py", "python3 train.py"),
        (f"./prep.sh && {LAYER}.roles roles.json > log", "./prep.sh && PY -m determined.launch.roles roles.json > log"),
        (f"{LAYER}.horovod t.py -m determined.launch.x > out 2> err", "PY t.py -m determined.launch.x > out 2> err"),
    ],
)
def test_only_the_launch_layers_of_a_shell_line_are_rewritten(entrypoint: str, expected: str) -> None:
    assert make(entrypoint, python="PY", test_mode=False).argv == ("sh", "-c", expected)


def test_an_entrypoint_list_stays_a_list_without_its_layers() -> None:
    words = [
        "nice",
        "python3",
        "-m",
        "determined.launch.torch_distributed",
        "train.py",
        "a b",
        "",
        "--",
        "--trial",
        "é",
    ]
    plan = make(words, python="/p y", test_mode=True)
    assert plan.argv == ("nice", "/p y", "train.py", "a b", "", "--", "--trial", "é")
    assert plan.stripped == ("torch_distributed",)
    assert make(["./run"], python="p", test_mode=True).argv == ("./run",)


@pytest.mark.parametrize("entrypoint", ["m:C", " m:C", f"{LAYER}.torch_distributed --trial m:C"])
def test_test_mode_is_passed_to_a_trial_class(entrypoint: str) -> None:
    plan = make(entrypoint, python="PY", test_mode=True)
    assert plan.is_trial
    assert plan.argv[-1].split()[-2:] == ["--test-mode", "m:C"] or plan.argv[-2:] == ("--test-mode", "m:C")


@pytest.mark.parametrize(
    "entrypoint",
    [
        f"{LAYER}.torch_distributed --nnodes 2 train.py",
        f"{LAYER}.horovod",
        f"{LAYER}.horovod --trial",
        f"{LAYER}.x --trial a:B c",
    ],
)
def test_an_entrypoint_that_the_cluster_refuses_is_refused_locally(entrypoint: str) -> None:
    with pytest.raises(ConfigError, match="entrypoint"):
        make(entrypoint, python="PY", test_mode=False)


def test_the_path_of_a_python_with_spaces_is_quoted() -> None:
    assert make(f"{LAYER}.horovod t.py", python="/a b/py", test_mode=False).argv[2] == "'/a b/py' t.py"
