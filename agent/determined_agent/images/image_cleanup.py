"""Removes images that this agent pulled and that no task has used for long, by age and total size.

An image is never removed if this agent did not pull it, while a container of anybody uses it, if it is a default image,
or if somebody gave it another name.
"""

import asyncio
import logging
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from determined.link.stale_files import UnusedEntry, stale
from determined_agent.drivers.engine import Engine, EngineError, EngineUnavailable, NoSuchObject, NotRunning
from determined_agent.images.image_name import full_name
from determined_agent.images.pulled_images import PulledImage, PulledImages
from determined_agent.settings import Settings

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 600.0
NO_LIMIT = 1 << 62


class ImageCleanup:
    """Applies ``unused_image_seconds`` and ``unused_image_bytes`` of an agent's settings."""

    def __init__(self, engine: Engine, pulled: PulledImages, settings: Settings, defaults: Collection[str]) -> None:
        """Creates the clean-up of one agent. ``defaults``: names of images that are always kept."""
        self._engine = engine
        self._pulled = pulled
        self._max_age = settings.unused_image_seconds
        self._max_bytes = settings.unused_image_bytes
        self._defaults = frozenset(map(full_name, defaults))

    @property
    def is_on(self) -> bool:
        return self._max_age is not None or self._max_bytes is not None

    async def run(self) -> None:
        """Cleans up every few minutes until cancelled; ends at once if no setting asks for it."""
        while self.is_on:
            try:
                await self.tick()
            except EngineUnavailable as problem:
                logger.info("unused images are removed later: %s", problem.message)
            except Exception:
                logger.exception("cannot remove unused images; trying again")
            await asyncio.sleep(INTERVAL_SECONDS)

    async def tick(self) -> None:
        """Removes the images that are unused for too long, and the oldest beyond the total size."""
        sizes = {image.id: await self._size(image) for image in self._pulled.images}
        entries = [
            UnusedEntry(image.id, image.used, sizes[image.id]) for image in self._pulled.images if image.id in sizes
        ]
        max_age = NO_LIMIT if self._max_age is None else self._max_age
        max_bytes = NO_LIMIT if self._max_bytes is None else self._max_bytes
        for entry in stale(entries, time.time(), max_age=max_age, max_bytes=max_bytes):
            await self._remove(entry)

    async def _size(self, image: PulledImage) -> int:
        try:
            facts = await self._engine.call(lambda api: _inspect(api, image.id))
        except NoSuchObject:
            await asyncio.to_thread(self._pulled.forget, image.id)
            return 0
        return int(facts.get("Size") or 0)

    async def _remove(self, entry: UnusedEntry) -> None:
        image = next((one for one in self._pulled.images if one.id == entry.name), None)
        if image is None or image.used != entry.changed:
            return  # removed by somebody, or used since it was listed
        try:
            removed = await self._engine.call(lambda api: self._remove_now(api, image))
        except NotRunning as problem:  # a container or another image needs it
            logger.info("kept the unused image %s: %s", ", ".join(image.names), problem.message)
            return
        except EngineUnavailable:
            raise
        except EngineError as problem:
            logger.warning("cannot remove the unused image %s: %s", ", ".join(image.names), problem.message)
            return
        if removed:
            days = (time.time() - image.used) / 86400
            logger.info("removed the image %s, unused for %.1f days", ", ".join(image.names), days)
            await asyncio.to_thread(self._pulled.forget, image.id)

    def _remove_now(self, api: "APIClient", image: PulledImage) -> bool:
        """Returns True if the image is gone. Blocking."""
        if api.containers(all=True, quiet=True, filters={"ancestor": image.id}):
            self._pulled.use(image.id)  # its time begins when the container has gone
            return False
        tags = [full_name(str(tag)) for tag in _inspect(api, image.id).get("RepoTags") or []]
        ours = set(map(full_name, image.names))
        if not set(tags) <= ours or ours & self._defaults:
            return False
        for each in tags or [image.id]:
            api.remove_image(each)
        return True


def _inspect(api: "APIClient", image_id: str) -> dict[str, Any]:
    facts: dict[str, Any] = api.inspect_image(image_id)  # type: ignore[no-untyped-call]  # a decorator of the package
    return facts
