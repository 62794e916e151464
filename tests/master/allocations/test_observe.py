"""The reason for the end of an allocation, from the exits of its containers."""

import pytest

from determined.link.messages import ContainerExit, RankExit
from determined.states import ContainerState as C
from determined.states import ExitReason as R
from determined_master.allocations.observe import end_of, further

OK = ContainerExit(kind="exited", code=0)
FAILED = ContainerExit(kind="exited", code=3)
SIGNALED = ContainerExit(kind="exited", signal=9)
KILLED = ContainerExit(kind="killed", signal=9)
SYSTEM = ContainerExit(kind="system", message="gone")
UNFIT = ContainerExit(kind="failed_to_start", message="no such environment")


@pytest.mark.parametrize(
    ("exits", "killed", "acknowledged", "reason", "code"),
    [
        ([OK], False, False, R.COMPLETED, 0),
        ([OK], False, True, R.PREEMPTED, 0),
        ([FAILED], False, False, R.ERRORED, 3),
        ([FAILED], False, True, R.ERRORED, 3),
        ([SIGNALED], False, False, R.ERRORED, 137),
        ([KILLED], True, False, R.KILLED, None),
        ([KILLED], False, False, R.KILLED, None),
        ([OK], True, False, R.KILLED, None),
        ([SYSTEM], False, False, R.SYSTEM, None),
        ([SYSTEM], True, False, R.KILLED, None),
        ([KILLED, SYSTEM], False, False, R.SYSTEM, None),
        ([KILLED, SYSTEM], True, False, R.KILLED, None),
        ([UNFIT], False, False, R.ERRORED, None),
        ([FAILED, KILLED], True, False, R.ERRORED, 3),
        ([KILLED, FAILED], True, False, R.ERRORED, 3),
    ],
)
def test_the_end_of_an_attempt_follows_from_the_exits_of_its_containers(exits, killed, acknowledged, reason, code):
    end = end_of(exits, killed=killed, acknowledged=acknowledged)
    assert (end.reason, end.code) == (reason, code)


def test_of_several_failures_the_first_is_the_cause():
    def failed(rank, code, time):
        return ContainerExit(
            kind="exited", code=1, message=f"rank {rank}", ranks=[RankExit(rank=rank, code=code, time=time)]
        )

    lost_its_peer, killed = failed(0, 1, 20.5), failed(1, 137, 20.1)
    assert end_of([lost_its_peer, killed], killed=True, acknowledged=False).message == "rank 1"
    assert end_of([killed, FAILED], killed=True, acknowledged=False).message == "rank 1"


def test_a_container_state_never_moves_backwards():
    assert further(C.RUNNING, C.STARTING) is C.RUNNING
    assert further(C.RUNNING, C.TERMINATED) is C.TERMINATED
