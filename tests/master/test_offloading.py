"""Blocking work on large inputs outside the event loop."""

import os

from determined_master.offloading import NICE, Offloader


async def test_its_processes_give_way_to_requests():
    assert await Offloader(1).run(os.nice, 0) == min(19, os.nice(0) + NICE)
