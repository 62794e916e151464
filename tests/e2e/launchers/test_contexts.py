"""DistributedContext under horovod and deepspeed. For torch.distributed see test_ranks.py."""

import json

import pytest
from tests.support import launchers

EXCHANGES = """
import json, sys
from determined import core
if sys.argv[1] == "horovod":
    import horovod.torch as hvd
    hvd.init()
    d = core.DistributedContext.from_horovod(hvd)
else:
    d = core.DistributedContext.from_deepspeed()
ranks = [d.get_rank(), d.get_size(), d.get_local_rank(), d.get_local_size(), d.get_cross_rank(), d.get_cross_size()]
out = {"ranks": ranks, "gather": d.gather(d.rank), "allgather": d.allgather("r%d" % d.rank),
       "broadcast": d.broadcast(d.rank), "local": d.allgather_local(d.rank * 2), "agents": d.get_num_agents()}
print("\\nOUT" + json.dumps(out), flush=True)
d.close()
"""


def outputs(text):
    lines = [json.loads(line[3:]) for line in text.splitlines() if line.startswith("OUT")]
    return sorted(lines, key=lambda item: item["ranks"][0])


@pytest.mark.long  # tests/harness/core/test_distributed.py has the context of processes without a launcher
@pytest.mark.parametrize("launcher", launchers.params("horovod", "deepspeed"))
def test_horovod_and_deepspeed_give_the_same_context(tmp_path, launcher):
    (tmp_path / "exchanges.py").write_text(EXCHANGES)
    first, second = outputs(launchers.run(launcher, 2, ["exchanges.py", launcher], folder=tmp_path))
    assert (first["ranks"], second["ranks"]) == ([0, 2, 0, 2, 0, 1], [1, 2, 1, 2, 0, 1])
    assert (first["gather"], second["gather"]) == ([0, 1], None)
    for each in (first, second):
        assert each["allgather"] == ["r0", "r1"]
        assert (each["broadcast"], each["local"], each["agents"]) == (0, [0, 2], 1)
