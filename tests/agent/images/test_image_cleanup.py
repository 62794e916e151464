"""Removal of long unused images that the agent itself pulled; images of others and images in use stay."""

import contextlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_engine import Answer, Call, FakeEngine, fake_engine

from determined_agent.drivers.engine import Engine, EngineUnavailable
from determined_agent.images.image_cleanup import ImageCleanup
from determined_agent.images.pulled_images import FILE, PulledImages
from determined_agent.settings import Settings

DAY = 86400.0
OLD, NEW = "sha256:old", "sha256:new"


class ImageStore:
    """Images of a scripted engine, by id, and the ids of the images that containers use."""

    def __init__(self, **tags: list[str]) -> None:
        self.tags = {f"sha256:{name}": image_tags for name, image_tags in tags.items()}
        self.in_use: set[str] = set()
        self.size = 100

    def rule(self, call: Call) -> Answer | None:
        if call.path == "/containers/json":
            used = [image for image in self.in_use if image.removeprefix("sha256:") in call.query]
            return 200, [{"Id": "one"} for _ in used]
        match = re.fullmatch(r"/images/(.+?)(/json)?", call.path)
        if match is None:
            return None
        name = match[1].replace("%3A", ":").replace("%2F", "/")
        image = next((image_id for image_id, tags in self.tags.items() if name in (image_id, *tags)), None)
        if image is None:
            return 404, {"message": f"no such image: {name}"}
        if call.method == "GET":
            return 200, {"Id": image, "RepoTags": self.tags[image], "Size": self.size}
        self.tags[image] = [tag for tag in self.tags[image] if tag != name]
        if not self.tags[image]:
            del self.tags[image]
        return 200, [{"Untagged": name}]


@contextlib.asynccontextmanager
async def cleanup_on(
    folder: Path, images: ImageStore, defaults: tuple[str, ...] = (), **settings: Any
) -> AsyncIterator[tuple[FakeEngine, ImageCleanup]]:
    path = folder / "engine.sock"
    async with fake_engine(path, rules=[images.rule]) as fake:
        engine = Engine(f"unix://{path}")
        agent_settings = Settings(data=folder, **settings)
        try:
            yield fake, ImageCleanup(engine, PulledImages(folder), agent_settings, defaults)
        finally:
            engine.close()


def write_record(folder: Path, **ages: float) -> None:
    """Writes the record of an agent that pulled ``lab/NAME:1`` and last used it so many seconds ago."""
    records = [
        {"id": f"sha256:{name}", "names": [f"lab/{name}:1"], "used": time.time() - age} for name, age in ages.items()
    ]
    (folder / FILE).write_text(json.dumps(records))


def recorded(folder: Path) -> list[str]:
    return [image.id for image in PulledImages(folder).images]


async def test_a_long_unused_image_is_removed_and_a_recently_used_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_record(tmp_path, old=31 * DAY, new=DAY)
    images = ImageStore(old=["lab/old:1"], new=["lab/new:1"], foreign=["somebody/else:1"])
    with caplog.at_level(logging.INFO):
        async with cleanup_on(tmp_path, images, unused_image_seconds=30 * DAY) as (_, cleanup):
            await cleanup.tick()
    assert set(images.tags) == {NEW, "sha256:foreign"}
    assert recorded(tmp_path) == [NEW]
    assert "removed the image lab/old:1, unused for 31.0 days" in caplog.text


async def test_beyond_the_total_size_the_longest_unused_image_is_removed_first(tmp_path: Path) -> None:
    write_record(tmp_path, old=2 * DAY, new=DAY)
    images = ImageStore(old=["lab/old:1"], new=["lab/new:1"])
    async with cleanup_on(tmp_path, images, unused_image_bytes=150) as (_, cleanup):
        await cleanup.tick()
        assert set(images.tags) == {NEW}
        images.size = 1000
        write_record(tmp_path, new=300)
    async with cleanup_on(tmp_path, images, unused_image_bytes=150) as (_, cleanup):
        await cleanup.tick()
    assert set(images.tags) == {NEW}, "a task that starts may be about to use it"


async def test_an_image_of_a_container_stays_and_its_unused_time_restarts(tmp_path: Path) -> None:
    write_record(tmp_path, old=31 * DAY)
    images = ImageStore(old=["lab/old:1"])
    images.in_use.add(OLD)
    async with cleanup_on(tmp_path, images, unused_image_seconds=30 * DAY) as (engine, cleanup):
        await cleanup.tick()
        assert not [call for call in engine.calls if call.method == "DELETE"]
        images.in_use.clear()
        await cleanup.tick()
    assert set(images.tags) == {OLD}
    (image,) = PulledImages(tmp_path).images
    assert time.time() - image.used < DAY


@pytest.mark.parametrize(
    ("tags", "defaults"),
    [(["lab/old:1", "somebody/else:1"], ()), (["lab/old:1"], ("docker.io/lab/old:1",))],
    ids=["another-name", "default-image"],
)
async def test_an_image_with_another_tag_and_a_default_image_stay(
    tmp_path: Path, tags: list[str], defaults: tuple[str, ...]
) -> None:
    write_record(tmp_path, old=31 * DAY)
    images = ImageStore(old=tags)
    async with cleanup_on(tmp_path, images, defaults, unused_image_seconds=30 * DAY) as (_, cleanup):
        await cleanup.tick()
    assert images.tags == {OLD: tags}


async def test_an_image_whose_tag_moved_to_a_newer_one_is_removed_by_its_id(tmp_path: Path) -> None:
    """``force_pull_image`` leaves the older image without a name."""
    write_record(tmp_path, old=31 * DAY)
    images = ImageStore(old=[])
    async with cleanup_on(tmp_path, images, unused_image_seconds=30 * DAY) as (_, cleanup):
        await cleanup.tick()
    assert not images.tags
    assert not recorded(tmp_path)


async def test_an_image_that_was_removed_by_hand_is_removed_from_the_record(tmp_path: Path) -> None:
    write_record(tmp_path, old=DAY)
    async with cleanup_on(tmp_path, ImageStore(), unused_image_seconds=30 * DAY) as (_, cleanup):
        await cleanup.tick()
    assert not recorded(tmp_path)


async def test_an_image_that_the_engine_does_not_remove_is_logged_and_the_others_are_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_record(tmp_path, old=32 * DAY, new=31 * DAY)
    images = ImageStore(old=["lab/old:1"], new=["lab/new:1"])

    def refuse(call: Call) -> Answer | None:
        is_removal_of_old = call.method == "DELETE" and "old" in call.path
        return (409, {"message": "image has dependent child images"}) if is_removal_of_old else None

    with caplog.at_level(logging.INFO):
        async with cleanup_on(tmp_path, images, unused_image_seconds=30 * DAY) as (engine, cleanup):
            engine.rules.insert(0, refuse)
            await cleanup.tick()
    assert set(images.tags) == {OLD}
    assert "kept the unused image lab/old:1: image has dependent child images" in caplog.text


async def test_the_record_stays_when_the_engine_is_away(tmp_path: Path) -> None:
    write_record(tmp_path, old=31 * DAY)
    async with cleanup_on(tmp_path, ImageStore(), unused_image_seconds=30 * DAY) as (engine, cleanup):
        engine.is_away = True
        with pytest.raises(EngineUnavailable):
            await cleanup.tick()
    assert recorded(tmp_path) == [OLD]


async def test_without_a_limit_the_cleanup_calls_no_engine(tmp_path: Path) -> None:
    write_record(tmp_path, old=999 * DAY)
    async with cleanup_on(tmp_path, ImageStore(old=["lab/old:1"])) as (engine, cleanup):
        await cleanup.run()
        assert engine.calls == []


def test_an_unreadable_record_lists_no_image(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('[{"id": 7}')
    assert PulledImages(tmp_path).images == ()
