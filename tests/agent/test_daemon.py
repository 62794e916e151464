"""The agent against a small real master on localhost."""

from pathlib import Path

from tests.support.agents import agent_on, make_wish
from tests.support.eventually import eventually
from tests.support.fake_link_master import FakeLinkMaster, serving


async def test_a_container_is_started_its_output_shipped_its_exit_told_and_then_forgotten(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    wish = make_wish("echo out; echo '[rank=3] WARNING: hm' >&2; exit 4")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.wish(wish)
        await eventually(lambda: (t := master.truth_of(wish.container_id)) and t.output_done)
        truth = master.truth_of(wish.container_id)
        assert truth is not None
        assert truth.exit is not None
        assert (truth.state, truth.exit.kind, truth.exit.code) == ("TERMINATED", "exited", 4)
        assert master.text_of(wish.container_id) == ["out", "hm"]
        second = next(line for line in master.lines[wish.container_id] if line.log == "hm")
        assert (second.rank_id, second.level, second.stdtype) == (3, "WARNING", "stderr")
        await master.wish()
        await eventually(lambda: master.truth_of(wish.container_id) is None)
        await eventually(lambda: not list((tmp_path / "runs").iterdir()))
