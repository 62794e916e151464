"""Containers that the agent removes from its list: one that cannot be removed delays no other."""

from pathlib import Path

import pytest
from tests.agent.test_daemon import ended
from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually


async def test_a_container_that_cannot_be_forgotten_does_not_delay_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgetting the first container raises. The second is forgotten meanwhile, and the first is retried."""
    master, first, second = FakeLinkMaster(), make_desired("exit 1"), make_desired("exit 2")
    is_broken = True
    async with serving(master.app()) as url, agent_on(url, tmp_path) as daemon:
        forget = daemon._forget

        def failing_forget(container_id: str) -> None:
            if container_id == first.container_id and is_broken:
                raise RuntimeError("a test's")
            forget(container_id)

        monkeypatch.setattr(daemon, "_forget", failing_forget)
        await master.set_desired(first, second)
        await ended(master, first)
        await ended(master, second)
        await master.set_desired()
        await eventually(lambda: master.report_of(second.container_id) is None)
        assert master.report_of(first.container_id) is not None
        is_broken = False
        await eventually(lambda: master.report_of(first.container_id) is None)
