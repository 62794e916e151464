"""``DistributedContext`` of ranks that no launcher started, and the three preemption modes."""

import json

import pytest
from tests.support import rank_processes
from tests.support.fake_master import serving, task_environment

from determined import core

ALLGATHER = """
import json
from determined import core
d = core.DistributedContext.from_torch_distributed()
print("\\nOUT" + json.dumps({"ranks": [d.rank], "allgather": d.allgather("r%d" % d.rank)}), flush=True)
d.close()
"""


def script(folder, name, text):
    (folder / name).write_text(text)
    return name


def outputs(text):
    items = [json.loads(line[3:]) for line in text.splitlines() if line.startswith("OUT")]
    return sorted(items, key=lambda item: item["ranks"][0])


def test_two_runs_on_one_machine_with_equal_key_and_ports_stay_separate(tmp_path):
    """Two containers of one machine may share key and ports. Only their folders differ."""
    runs = []
    name = script(tmp_path, "allgather.py", ALLGATHER)
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        environ = {"DET_RUN_DIR": str(folder), "DET_ALLOCATION_KEY": "ab" * 32, "DET_CHIEF_IP": "127.0.0.1"}
        runs.append(rank_processes.by_hand(2, [name], folder=tmp_path, **environ))
    for children in runs:
        text = "".join(rank_processes.finish(child) for child in children)
        assert [item["allgather"] for item in outputs(text)] == [["r0", "r1"]] * 2


@pytest.mark.parametrize("name", ["torch_distributed", "deepspeed"])
def test_without_a_launcher_the_error_names_the_layer(monkeypatch, name):
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(RuntimeError, match=f"determined.launch.{name}"):
        getattr(core.DistributedContext, f"from_{name}")()


def test_a_rank_that_contradicts_the_size_is_refused():
    with pytest.raises(ValueError, match="rank 2 of 2"):
        core.DistributedContext(rank=2, size=2, local_rank=0, local_size=1, cross_rank=0, cross_size=2)


ASK_PREEMPTION = """
import json, sys, time
from determined import core
mode = core.PreemptMode[sys.argv[1]]
d = core.DistributedContext.from_torch_distributed()
with core.init(distributed=d, preempt_mode=mode) as c:
    refused, answers = "", []
    try:
        answers.append(c.preempt.should_preempt(auto_ack=False))
    except RuntimeError as error:
        refused = str(error)
    d.allgather(None)
    if d.rank == 0:
        c.train.report_training_metrics(1, {"asked": 1})
    while not refused and not answers[-1]:
        time.sleep(0.01)
        answers.append(c.preempt.should_preempt())
    print("\\nOUT" + json.dumps({"ranks": [d.rank], "refused": refused, "answers": answers}))
"""


@pytest.mark.parametrize("mode", ["WorkersAskChief", "ChiefOnly", "WorkersAskMaster"])
def test_each_preempt_mode_asks_and_acknowledges_as_documented(tmp_path, mode):
    name = script(tmp_path, "asks.py", ASK_PREEMPTION)
    with serving() as master:
        environ = {**task_environment(master, tmp_path), "DET_SLOT_IDS": "[0, 1]"}
        children = rank_processes.by_hand(2, [name, mode], folder=tmp_path, **environ)
        master.wait_for("/metrics")
        master.preempt.set()
        chief, worker = outputs("".join(rank_processes.finish(child) for child in children))
        acknowledged = len(master.bodies("/ack_preemption"))
    assert chief["answers"][0] is False
    assert chief["answers"][-1] is True
    if mode == "ChiefOnly":
        assert "only the chief" in worker["refused"]
        assert acknowledged == 1
    elif mode == "WorkersAskChief":
        # All ranks get the same answers.
        assert worker["answers"] == chief["answers"]
        assert acknowledged == 1
    else:
        assert (worker["answers"][0], worker["answers"][-1]) == (False, True)
        assert acknowledged == 2
