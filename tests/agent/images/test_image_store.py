"""Refusals of an engine when an image is examined."""

from pathlib import Path

import pytest
from tests.support.fake_engine import Call, fake_engine

from determined_agent.drivers.driver import NotStarted
from determined_agent.drivers.engine import Engine
from determined_agent.images.image_store import Images


def refusing(call: Call) -> tuple[int, dict[str, str]] | None:
    if call.line == "GET /images/lab/train:1/json":
        return 200, {"Id": "sha256:1"}
    if call.line == "POST /containers/create":
        return 500, {"message": "the image is for another platform"}
    return None


async def test_an_image_of_which_the_engine_makes_no_container_is_named(tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    async with fake_engine(path, rules=[refusing]):
        engine = Engine(f"unix://{path}", seconds=5)
        with pytest.raises(NotStarted) as failed:
            await Images(engine, tmp_path).find("lab/train:1", lambda text: None)
        engine.close()
    assert str(failed.value) == "environment.image: lab/train:1: the image is for another platform"
