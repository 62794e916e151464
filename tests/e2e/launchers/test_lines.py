"""Entrypoints as documented: the user's overrides win, and arguments reach the script unchanged."""

import json
from pathlib import Path

import pytest
from tests.support.live_launchers import LAYERS, command_lines, example_under, example_with_entrypoint, workers
from tests.support.live_processes import environ_of
from tests.support.live_trials import Experiment, create
from tests.support.waiting import wait_until

from determined.errors import BadRequest

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "starts real launchers")]
MY_TRIAL = {"model_def.py": "from held import SpiralTrial as MyTrial\n"}
GATE = "train-6"


def experiment_held(
    gang, tmp_path, entrypoint, *, layer="torch_distributed", shape="2x1", slots=0, files=None, **changes
):
    """Returns an experiment with this entrypoint, held in its seventh batch."""
    slots = slots or gang.shape(shape)
    model = example_with_entrypoint(entrypoint, slots=slots, layer=layer)
    experiment = create(gang, model, tmp_path, files=MY_TRIAL | (files or {}), held=(GATE,), **changes)
    experiment.at_gate(GATE, within=120)
    return experiment


def finish(experiment: Experiment) -> None:
    experiment.open_gate(GATE)
    experiment.ended(within=120)
    assert experiment.progress["steps"] == 40


def launcher(experiment: Experiment, name: str) -> list[str]:
    """Returns the command line of the running launcher."""
    matches = [line for line in command_lines(experiment) if any(word.endswith(name) for word in line[:4])]
    assert matches, command_lines(experiment)
    return matches[0]


@pytest.mark.long  # test_overrides_arguments_and_hook_variables_reach_the_workers passes overrides of horovod too
def test_a_horovod_line_passes_its_overrides_to_the_workers(gang, tmp_path):
    line = "python3 -m determined.launch.horovod --fusion-threshold-mb 1 --cycle-time-ms 2 -- --trial model_def:MyTrial"
    experiment = experiment_held(gang, tmp_path, line, layer="horovod")
    environ = environ_of(workers(experiment)[1])
    assert environ["HOROVOD_FUSION_THRESHOLD"] == str(1 << 20)
    assert float(environ["HOROVOD_CYCLE_TIME"]) == 2
    finish(experiment)


@pytest.mark.long  # the test of overrides has a hook's variables
def test_a_torch_distributed_line_expands_variables_of_the_startup_hook(gang, tmp_path):
    """The store of the workers listens at the user's address on the chief."""
    line = (
        "python3 -m determined.launch.torch_distributed --rdzv_endpoint=$CUSTOM_RDZV_ADDR -- --trial model_def:MyTrial"
    )
    chief, port = gang.network.machines[0].address, 31871
    hook = f"export CUSTOM_RDZV_ADDR={chief}:{port}\n"
    experiment = experiment_held(gang, tmp_path, line, files={"startup_hook__sh": hook})
    pids = workers(experiment)
    assert listens(pids[0], port)
    assert not listens(pids[1], port)
    assert {environ_of(pid)["MASTER_PORT"] for pid in pids.values()} == {str(port)}
    finish(experiment)


@pytest.mark.long  # tests/e2e/launchers/test_matrix.py trains under deepspeed
@pytest.mark.parametrize("overrides", ["", "--master_port 31872 -- "])
def test_a_deepspeed_line_runs_with_and_without_a_port(gang, tmp_path, overrides):
    line = f"python3 -m determined.launch.deepspeed {overrides}--trial model_def:MyTrial"
    experiment = experiment_held(gang, tmp_path, line, layer="deepspeed")
    ports = {environ_of(pid)["MASTER_PORT"] for pid in workers(experiment).values()}
    assert len(ports) == 1
    assert ("31872" in ports) == bool(overrides)
    finish(experiment)


DLPROF = """#!/bin/sh
echo "dlprof was given $1"
shift
exec "$@"
"""


@pytest.mark.long  # test_overrides_arguments_and_hook_variables_reach_the_workers starts a layer by its line
@pytest.mark.parametrize(("shape", "slots"), [("1x2", 1), ("2x1", 2)])
def test_a_layer_runs_below_another_program(gang, tmp_path, shape, slots):
    gang.shape(shape)
    line = "dlprof --mode=simple python3 -m determined.launch.autohorovod --trial model_def:MyTrial"
    files = {"dlprof": DLPROF, "startup_hook__sh": "chmod +x $PWD/dlprof\nexport PATH=$PWD:$PATH\n"}
    experiment = experiment_held(gang, tmp_path, line, layer="horovod", slots=slots, files=files)
    assert any("horovod.runner.launch" in line for line in command_lines(experiment)) == (slots > 1)
    finish(experiment)
    assert experiment.log.count("dlprof was given --mode=simple") == slots


@pytest.mark.long  # tests/launch has the line of each; a line of horovod runs below
@pytest.mark.parametrize(
    ("shape", "slots", "legacy"),
    [
        ("1x2", 2, "horovod"),
        ("1x2", 1, None),
        ("2x1", 2, None),
        ("1x2", 1, "horovod"),
        ("1x2", 2, None),
        ("2x1", 2, "horovod"),
    ],
)
def test_a_legacy_entrypoint_runs_under_the_chosen_layer(gang, tmp_path, shape, slots, legacy):
    gang.shape(shape)
    changes = {"legacy_launcher": legacy} if legacy else {}
    experiment = experiment_held(gang, tmp_path, "model_def:MyTrial", slots=slots, **changes)
    layer = "determined.exec.harness" if slots == 1 else f"determined.launch.{legacy or 'torch_distributed'}"
    assert any("entrypoint model_def:MyTrial runs as:" in line and layer in line for line in experiment.log)
    finish(experiment)


TELLS = """
import json, os, pathlib, sys, time
rank = os.environ.get("HOROVOD_RANK") or os.environ["RANK"]
facts = {"arguments": sys.argv[1:], "hook": os.environ.get("FROM_HOOK"), "rank": rank}
print(json.dumps(facts, ensure_ascii=False), flush=True)
here = pathlib.Path(os.environ["GATES"], "tells")
while here.exists():
    time.sleep(0.01)
"""
ARGUMENTS = ["a b", "", "--", "--trial", "é", "-n", "$HOME"]
OVERRIDES = {
    # overrides of our defaults, arguments unknown to us, and their effects on the workers
    "torch_distributed": (
        ["--master_port", "31873", "--event-log-handler", "null"],
        {"MASTER_PORT": "31873"},
        "torch.distributed.run",
    ),
    "horovod": (
        ["--cycle-time-ms", "3", "--stall-check-warning-time-seconds", "77"],
        {"HOROVOD_CYCLE_TIME": "3.0", "HOROVOD_STALL_CHECK_TIME_SECONDS": "77"},
        "horovod.runner.launch",
    ),
    "deepspeed": (["--master_port", "31874", "--log_level", "warning"], {"MASTER_PORT": "31874"}, "runner"),
}


@pytest.mark.parametrize(
    "layer", [pytest.param(layer, marks=() if layer == "horovod" else pytest.mark.long) for layer in LAYERS]
)
def test_overrides_arguments_and_hook_variables_reach_the_workers(gang, tmp_path, layer):
    overrides, effect, name = OVERRIDES[layer]
    slots = gang.shape("2x1")
    argv = ["python3", "-m", f"determined.launch.{layer}", *overrides, "--", "tells.py", *ARGUMENTS]
    files = {"tells__py": TELLS, "startup_hook__sh": "echo the hook ran\nexport FROM_HOOK=$((1 + 1))\n"}
    model = example_under(layer, "script", slots=slots)
    experiment = create(gang, model, tmp_path, files=files, held=("tells",), entrypoint=argv)
    printed = wait_until(lambda: printed_by_both_ranks(experiment), within=60, what="both ranks tell")
    assert printed == {str(rank): {"arguments": ARGUMENTS, "hook": "2", "rank": str(rank)} for rank in range(2)}
    running = launcher(experiment, name)
    assert all(word in running for word in overrides), running
    for pid in experiment.processes:
        environ = environ_of(pid)
        if ("HOROVOD_RANK" if layer == "horovod" else "LOCAL_RANK") in environ:
            assert {key: environ.get(key) for key in effect} == effect
    experiment.open_gate("tells")
    experiment.ended(within=60)
    assert experiment.log.count("the hook ran") == 2


def printed_by_both_ranks(experiment: Experiment) -> dict[str, dict] | None:
    lines = [line.partition("{")[1] + line.partition("{")[2] for line in experiment.log if '"arguments"' in line]
    printed = {value["rank"]: value for value in map(json.loads, lines)}
    return printed if len(printed) == 2 else None


@pytest.mark.parametrize(
    "layer",
    ["torch_distributed", *(pytest.param(each, marks=pytest.mark.long) for each in (*LAYERS[1:], "autohorovod"))],
)
def test_a_line_without_the_separator_is_refused_with_the_corrected_line(gang, tmp_path, layer):
    """The line is refused at submission, or in the log if only the shell expands its words."""
    module = f"python3 -m determined.launch.{layer}"
    corrected = f"{module} --some-flag 1 -- --trial model_def:MyTrial"
    gang.shape("1x2")
    with pytest.raises(BadRequest, match=f"help: write {corrected}"):
        create(
            gang,
            example_with_entrypoint(f"{module} --some-flag 1 --trial model_def:MyTrial", slots=2),
            tmp_path,
            files=MY_TRIAL,
        )
    line = f"FLAGS='--some-flag 1'; {module} $FLAGS --trial model_def:MyTrial"
    experiment = create(
        gang, example_with_entrypoint(line, slots=2), tmp_path / "second", files=MY_TRIAL, max_restarts=0
    )
    experiment.ended("ERROR", within=60)
    assert any(line.strip() == corrected for line in experiment.log), experiment.log


def listens(pid: int, port: int) -> bool:
    """Returns True if a process listens on this port on the machine of ``pid``."""
    for family in ("tcp", "tcp6"):
        rows = [row.split() for row in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]]
        if any(row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port for row in rows):
            return True
    return False
