"""Runs in each of two ranks: trains from data sources, straight and in pieces, and compares the bytes.

Arguments: a scratch folder and the names of sources. Writes a line ``OUT`` + JSON of source → True for each pause and
failure that changes nothing on this rank.
"""

import json
import os
import sys
from pathlib import Path

import torch
from tests.harness.pytorch.test_order_after_pauses import BATCHES, is_equal, run_of
from tests.support.attempts import Attempt, chain

from determined import core

store = torch.distributed.FileStore(f"{sys.argv[1]}-store", 2)
torch.distributed.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]), world_size=2)
peers = core.DistributedContext.from_torch_distributed()


def shared(result: Attempt) -> Attempt:
    """Broadcasts the checkpoints of the chief, so that both ranks run the same next attempt."""
    result.stored, result.acknowledged = peers.broadcast((result.stored, result.acknowledged))
    return result


results = {}
for source in sys.argv[2:]:
    on_this_rank = run_of(source, 0, Path(sys.argv[1]), distributed=peers)

    def run(on_this_rank=on_this_rank, **options):
        return shared(on_this_rank(**options))

    straight = run()
    length = BATCHES // 2
    # A list, not a generator: both ranks must train together even after a difference on one of them.
    equal = [is_equal(straight, chain(run, moments)) for moments in ([1], [2 * length + 1], [1, 2, 1])]
    step, uuid = straight.stored[0]
    assert step == 2 * length + 1
    equal.append(is_equal(straight, [run(latest=uuid)], step))
    results[source] = equal
print("OUT" + json.dumps(results), flush=True)
