"""A DistributedContext under each real launcher, and by hand; the three ways to ask for preemption."""

import json

import pytest
from tests.support import launchers
from tests.support.fake_master import serving, task_environment

from determined import core

ME = """
from determined import core
def me(name):
    if name == "horovod":
        import horovod.torch as hvd
        hvd.init()
        return core.DistributedContext.from_horovod(hvd)
    return getattr(core.DistributedContext, f"from_{name}")()
"""

EXCHANGES = """
import json, sys
from me import me
d = me(sys.argv[1])
ranks = [d.get_rank(), d.get_size(), d.get_local_rank(), d.get_local_size(), d.get_cross_rank(), d.get_cross_size()]
out = {"ranks": ranks, "gather": d.gather(d.rank), "allgather": d.allgather("r%d" % d.rank),
       "broadcast": d.broadcast(d.rank), "local": d.allgather_local(d.rank * 2), "agents": d.get_num_agents()}
print("\\nOUT" + json.dumps(out), flush=True)
d.close()
"""


def script(folder, name, text):
    (folder / "me.py").write_text(ME)
    (folder / name).write_text(text)
    return name


def outputs(text):
    found = [json.loads(line[3:]) for line in text.splitlines() if line.startswith("OUT")]
    return sorted(found, key=lambda item: item["ranks"][0])


@pytest.mark.parametrize("launcher", launchers.each("horovod", "deepspeed"))  # torch's: see test_distributed
def test_the_other_launchers_give_the_same_context(tmp_path, launcher):
    name = script(tmp_path, "exchanges.py", EXCHANGES)
    first, second = outputs(launchers.run(launcher, 2, [name, launcher], folder=tmp_path))
    assert (first["ranks"], second["ranks"]) == ([0, 2, 0, 2, 0, 1], [1, 2, 1, 2, 0, 1])
    assert (first["gather"], second["gather"]) == ([0, 1], None)
    for each in (first, second):
        assert each["allgather"] == ["r0", "r1"]
        assert (each["broadcast"], each["local"], each["agents"]) == (0, [0, 2], 1)


def test_two_runs_on_one_machine_do_not_meet(tmp_path):
    """Same key, same ports in the environment, as two containers of one machine may have: their folders differ."""
    runs = []
    name = script(tmp_path, "exchanges.py", EXCHANGES)
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        environ = {"DET_RUN_DIR": str(folder), "DET_ALLOCATION_KEY": "ab" * 32, "DET_CHIEF_IP": "127.0.0.1"}
        runs.append(launchers.by_hand(2, [name, "torch_distributed"], folder=tmp_path, **environ))
    for children in runs:
        text = "".join(launchers.finish(child) for child in children)
        assert [item["allgather"] for item in outputs(text)] == [["r0", "r1"]] * 2


@pytest.mark.parametrize("name", ["torch_distributed", "deepspeed"])
def test_without_a_launcher_the_error_names_the_layer(monkeypatch, name):
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(RuntimeError, match=f"determined.launch.{name}"):
        getattr(core.DistributedContext, f"from_{name}")()


def test_by_hand_ranks_are_checked():
    with pytest.raises(ValueError, match="rank 2 of 2"):
        core.DistributedContext(rank=2, size=2, local_rank=0, local_size=1, cross_rank=0, cross_size=2)


ASKS = """
import json, sys, time
from me import me
from determined import core
mode = core.PreemptMode[sys.argv[1]]
d = me("torch_distributed")
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
def test_preempt_modes(tmp_path, mode):
    name = script(tmp_path, "asks.py", ASKS)
    with serving() as master:
        environ = {**task_environment(master, tmp_path), "DET_SLOT_IDS": "[0, 1]"}
        children = launchers.by_hand(2, [name, mode], folder=tmp_path, **environ)
        master.wait_for("/metrics")
        master.preempt.set()
        chief, worker = outputs("".join(launchers.finish(child) for child in children))
        acknowledged = len(master.bodies("/ack_preemption"))
    assert chief["answers"][0] is False
    assert chief["answers"][-1] is True
    if mode == "ChiefOnly":
        assert "only the chief" in worker["refused"]
        assert acknowledged == 1
    elif mode == "WorkersAskChief":
        # all leave at the same question
        assert worker["answers"] == chief["answers"]
        assert acknowledged == 1
    else:
        assert (worker["answers"][0], worker["answers"][-1]) == (False, True)
        assert acknowledged == 2
