"""Each rank of a plain script under a launch layer gets the signal of a pause, and the time to save."""

import pytest
from tests.support import plain_scripts
from tests.support.live_launchers import LAYERS

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
