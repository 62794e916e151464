"""Blocking work on large inputs outside the event loop."""

import os

from determined_master.offloading.offloader import NICE, Offloader


async def test_offloaded_work_runs_with_a_lower_priority():
    assert await Offloader(1).run(os.nice, 0) == min(19, os.nice(0) + NICE)
