"""The contexts that this agent has downloaded, each once, in the folder ``contexts`` of its data folder."""

import asyncio
import contextlib
import hashlib
import logging
import os
import time
from pathlib import Path

from determined.link.messages import ContextRef
from determined_agent.drivers.driver import NotStarted
from determined_agent.master_link.http import HttpClient, HttpError
from determined_agent.settings import Settings
from determined_launch.out_of_space import is_out_of_space

logger = logging.getLogger(__name__)

_KEPT_SECONDS = 7 * 86400.0
_FIRST_WAIT, _LAST_WAIT = 0.1, 2.0


class Contexts:
    def __init__(self, settings: Settings, token: str) -> None:
        self._settings = settings
        self._token = token
        self._folder = settings.data / "contexts"
        self._fetching: dict[str, asyncio.Lock] = {}

    async def fetch(self, context: ContextRef) -> Path:
        """Returns the file with the context's bytes after a check of the hash; retries until the master answers."""
        path = self._folder / f"{context.hash}.tar.zst"
        lock = self._fetching.setdefault(context.hash, asyncio.Lock())
        async with lock:
            if path.exists():
                os.utime(path)
                return path
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            client = HttpClient(self._settings.master, self._token, trust=self._settings.trust)
            wait = _FIRST_WAIT
            async with contextlib.aclosing(client):
                while True:
                    try:
                        await self._download(client, context, path)
                        self._drop_old()
                        return path
                    except HttpError as problem:
                        logger.warning("cannot download a context; trying again: %s", problem)
                        await asyncio.sleep(wait)
                        wait = min(wait * 2, _LAST_WAIT)

    def _drop_old(self) -> None:
        """Removes contexts that were not used lately; running tasks have unpacked copies of their own."""
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                    path.unlink()

    async def _download(self, client: HttpClient, context: ContextRef, path: Path) -> None:
        plan = path.with_name(f".{path.name}.{os.getpid()}")
        digest = hashlib.sha256()
        try:
            with plan.open("wb") as file:

                def keep(piece: bytes) -> None:
                    digest.update(piece)
                    file.write(piece)

                answer = await client.request("GET", f"/detent/contexts/{context.hash}", sink=keep)
            if answer.status == 404:
                raise NotStarted(f"the master no longer has context {context.hash}; submit the experiment again")
            if answer.status != 200:
                raise HttpError(f"the master answered {answer.status}")
            if digest.hexdigest() != context.hash:
                raise HttpError("the context was corrupted during download (its hash differs)")
            os.replace(plan, path)
        except OSError as error:
            if is_out_of_space(error):
                raise
            raise NotStarted(f"cannot store the context in {path.parent}: {error.strerror}") from error
        finally:
            plan.unlink(missing_ok=True)
