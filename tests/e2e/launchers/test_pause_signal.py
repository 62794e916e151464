"""Each rank of a plain script under a launch layer gets the signal of a pause, and the time to save."""

import importlib.util
from pathlib import Path

import pytest
from tests.support import plain_scripts
from tests.support.document_runner import steps
from tests.support.live_launchers import LAYERS
from tests.support.plain_scripts import PlainScript
from tests.support.waiting import wait_until

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "pausing-scripts.md"
pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.budget(90, "starts real launchers")]

RANK = """
import os, pathlib, signal, sys, time

rank = int(os.environ.get("RANK") or os.environ.get("HOROVOD_RANK") or 0)
saves = pathlib.Path(os.environ["SAVES"])
state = saves / f"state-{rank}"
step = int(state.read_text()) if state.exists() else 0

def save(*_):
    time.sleep(3 * rank)  # longer than a layer leaves the ranks after one has failed
    state.write_text(str(step))
    with (saves / "saved").open("a") as file:
        file.write(f"{rank}\\n")
    sys.exit(int(sys.argv[1]) if rank == 0 else 0)

signal.signal(getattr(signal, os.environ["DET_PAUSE_SIGNAL"]), save)
while step < 60:
    step += 1
    with (saves / f"steps-{rank}").open("a") as file:
        file.write(f"{step}\\n")
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("layer", "name"), [*((layer, "USR1") for layer in LAYERS), ("torch_distributed", "TERM"), ("", "USR1")]
)
def test_each_rank_is_asked_once_and_saves_although_another_has_left(cluster, tmp_path, layer, name):
    """``layer``: empty for a launcher that the entrypoint starts itself, which ends its ranks after one has failed."""
    own = "python3 -m torch.distributed.run --nproc_per_node 2 train.py 0"
    line = f"python3 -m determined.launch.{layer} python3 train.py 1" if layer else own
    script = plain_scripts.create(
        cluster,
        tmp_path,
        {"train.py": RANK},
        line,
        pause={"signal": f"SIG{name}", "grace": 40},
        resources={"slots_per_trial": 2},
    )
    pause_and_finish(script)


def test_ranks_on_two_machines_are_asked_although_one_learns_of_the_pause_first(gang, tmp_path):
    slots = gang.shape("2x1")
    line = "python3 -m determined.launch.torch_distributed python3 train.py 1"
    resources = {"slots_per_trial": slots}
    pause_and_finish(plain_scripts.create(gang, tmp_path, {"train.py": RANK}, line, resources=resources))


def pause_and_finish(script: PlainScript) -> None:
    for rank in (0, 1):
        script.has_lines(f"steps-{rank}", 3)
    script.pause()
    script.nothing_left()
    assert sorted(script.lines("saved")) == ["0", "1"]
    script.do("activate")
    script.ended()
    assert script.trials[0]["restarts"] == 0
    for rank in (0, 1):
        assert [int(line) for line in script.lines(f"steps-{rank}")] == list(range(1, 61))


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("pytorch_lightning") is None, reason="Lightning is not installed")
def test_the_script_for_lightning_of_the_page_saves_and_continues_with_two_ranks(cluster, tmp_path):
    (train,) = (step.text for step in steps(PAGE) if step.name == "lightning/train.py")
    train = train.replace("max_steps=6000", 'max_steps=2000, accelerator="cpu", devices=2, strategy="ddp"')
    script = plain_scripts.create(
        cluster,
        tmp_path,
        {"train.py": train},
        "python3 -m determined.launch.torch_distributed python3 train.py",
        pause={"signal": "SIGTERM", "grace": 40},
        resources={"slots_per_trial": 2},
    )
    wait_until(lambda: sum("from step 0" in line for line in script.log) == 2, within=60, what="both ranks train")
    script.do("pause")
    script.left(within=60)
    script.do("activate")
    script.ended()
    starts = [int(line.rpartition(" ")[2]) for line in script.log if "from step " in line]
    assert starts[:2] == [0, 0]
    assert starts[2] == starts[3] > 0
