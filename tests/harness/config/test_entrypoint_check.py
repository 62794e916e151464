"""Entrypoints that no launch layer can start are errors of the configuration."""

import json

import pytest

from determined.config import check

MASTER = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"}}


def findings(entrypoint: str) -> list[tuple[str, str]]:
    text = f"entrypoint: {entrypoint}\nsearcher: {{name: single, metric: loss}}\n"
    return [(diagnostic.code, diagnostic.message) for diagnostic in check(text, defaults=[MASTER]).diagnostics]


@pytest.mark.parametrize(
    ("entrypoint", "expected"),
    [
        ("python3 -m determined.launch.torch_distribute --trial m:C", 'unknown launch layer "torch_distribute"'),
        ("python3 -m determined.launch.mpi train.py", 'unknown launch layer "mpi"'),
        ("[python3, -m, determined.launch.mpi, train.py]", 'unknown launch layer "mpi"'),
        ("python3 -m determined.launch.tensorflow train.py", "determined.launch.tensorflow is not supported"),
        (
            "python3 -m determined.launch.torch_distributed --autohorovod train.py",
            "separated from the program by ' -- '",
        ),
        ("python3 -m determined.launch.deepspeed --trial m", "--trial needs a class: --trial module:Class; found: m"),
        ("nice -n 5 python3 -m determined.launch.horovod", "nothing to run"),
        ("./prepare.sh && python3 -m determined.launch.horovod", "nothing to run"),
        ("python3 -m determined.launch.horovod && echo done", "nothing to run"),
        ("python3 -m determined.launch.horovod --trial m:C train.py", "--trial takes one class and no script"),
        ("python3 -m determined.launch.roles", "the layer for roles takes one file"),
        ("python3 -m determined.launch.roles roles.json train.py", "the layer for roles takes one file"),
        ("python3 -m determined.launch.torch_distributed --nnodes 1 train.py", "separated from the program by ' -- '"),
    ],
)
def test_an_entrypoint_that_no_launch_layer_accepts_is_an_error(entrypoint: str, expected: str) -> None:
    ((code, message),) = findings(entrypoint)
    assert code == "E207"
    assert expected in message


@pytest.mark.parametrize(
    "entrypoint",
    [
        "python3 train.py --lr 0.1",
        "model_def:MyTrial",
        "dlprof --mode=simple python3 -m determined.launch.autohorovod --trial model_def:MnistTrial",
        "python3 -m determined.launch.torch_distributed --rdzv_endpoint=$ADDRESS -- --trial m:C",
        "python3 -m determined.launch.torch_distributed $OPTIONS",
        "python3 -m determined.launch.horovod --autohorovod --trial model_def:MnistTrial",
        "python3 -m determined.launch.deepspeed train.py -- --own-option",
        "python3 -m determined.launch.horovod --fusion-threshold-mb 1 -- --trial m:C | tee log",
        'echo "python3 -m determined.launch.mpi"',
        "python3 -m determined.launch.wrap_rank RANK -- python3 train.py",
        "python3 -m determined.launch.roles roles.json 2>&1 | tee log",
        "python3 train.py --text 'a",
    ],
)
def test_an_entrypoint_that_runs_is_accepted(entrypoint: str) -> None:
    quoted = "'" + entrypoint.replace("'", "''") + "'"
    assert findings(quoted) == []


@pytest.mark.parametrize(
    "entrypoint",
    [
        "python3 -m determined.launch.torch_distributed --trial m:C\necho done",
        "python3 -m determined.launch.torch_distributed --trial \\\n  m:C",
        "python3 -m \\\n  determined.launch.roles roles.json\n\necho ok",
        "python3 -m determined.launch.roles roles.json  # don't wait\necho ok",
        "# the job's layer\npython3 -m determined.launch.roles roles.json\n",
    ],
)
def test_an_entrypoint_of_several_lines_that_runs_is_accepted(entrypoint: str) -> None:
    assert findings(json.dumps(entrypoint)) == []


@pytest.mark.parametrize(
    "entrypoint",
    [
        "python3 -m determined.launch.horovod\necho done",
        "echo begun\npython3 -m \\\n  determined.launch.horovod  # nothing",
        "echo 'a\nb' # it's\npython3 -m determined.launch.horovod",
    ],
)
def test_an_entrypoint_of_several_lines_that_no_launch_layer_accepts_is_an_error(entrypoint: str) -> None:
    ((code, message),) = findings(json.dumps(entrypoint))
    assert code == "E207"
    assert "nothing to run" in message
