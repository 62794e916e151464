"""Deletes experiments that were asked to go: files first, rows after; drops contexts that nothing names any more."""

import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from determined.link.isolation import Isolation
from determined.states import ExperimentState
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.checkpoints.storage import folder_of
from determined_master.columns import upkeep
from determined_master.db.session import after_commit
from determined_master.experiments import repository as experiment_rows
from determined_master.logs import repository as log_rows
from determined_master.master import Master
from determined_master.metrics import chunk_rows
from determined_master.trials import facts
from determined_master.trials import repository as trial_rows

logger = logging.getLogger(__name__)

KEEP_UNREFERENCED_SECONDS = 3600.0
FOLDERS_PER_STEP = 50
MAX_PROBLEMS = 3
"""Of the checkpoints that could not be removed so many are told one by one."""

Drop = Callable[[AsyncSession, int, int | None], Awaitable[int]]
DROPS: Sequence[tuple[Drop, int]] = (
    (log_rows.drop_some, 5000),
    (trial_rows.drop_some_metrics, 1000),
    (chunk_rows.drop_some_chunks, 200),
    (chunk_rows.drop_some_series, 5000),
)
"""What deletes up to so many rows of an experiment, in this order. Others write between two transactions."""


class Deletion:
    def __init__(self, master: Master) -> None:
        self._master = master
        self._database = master.database
        self._items = Isolation("deletion", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            due = await experiment_rows.deleting(session)
        for experiment_id in due:
            await self._items.run("experiment", experiment_id, partial(self._delete, experiment_id))
        await self._items.run("contexts", "unreferenced", self._drop_contexts)
        return self._items.seconds_left()

    async def _delete(self, experiment_id: int) -> None:
        problems = await self._remove_checkpoints(experiment_id)
        if problems:
            text = _summary(problems)
            logger.error("experiment %d could not be deleted: %s", experiment_id, text)
            async with self._database.write() as session:
                row = await experiment_rows.get(session, experiment_id)
                clock = self._master.clock
                await experiment_rows.move(session, clock, row, ExperimentState.DELETE_FAILED, message=text)
            return
        for drop, most in DROPS:
            while await self._drop(drop, experiment_id, most):
                pass
        await self._finish(experiment_id)

    async def _remove_checkpoints(self, experiment_id: int) -> list[str]:
        """Why checkpoints could not be removed. The rows of the others are gone with their folders."""
        async with self._database.read() as session:
            storage = (await experiment_rows.get(session, experiment_id)).config.get("checkpoint_storage", {})
            uuids = await checkpoint_rows.uuids_of_experiment(session, experiment_id)
        problems: list[str] = []
        for some in _lots(uuids, FOLDERS_PER_STEP):
            failed = await asyncio.to_thread(_remove_folders, storage, some)
            problems += [f"checkpoint {uuid}: {why}" for uuid, why in failed.items()]
            async with self._database.write() as session:
                await checkpoint_rows.drop(session, [uuid for uuid in some if uuid not in failed])
        return problems

    async def _drop(self, drop: Drop, experiment_id: int, most: int) -> int:
        async with self._database.write() as session:
            return await drop(session, experiment_id, most)

    async def _finish(self, experiment_id: int) -> None:
        """One small transaction: what is left by now came in while the rest was deleted."""
        async with self._database.write() as session:
            row = await experiment_rows.get(session, experiment_id)
            trial_ids = await trial_rows.ids_of_experiment(session, experiment_id)
            after_commit(session, partial(self._master.metrics.forget, trial_ids))
            await experiment_rows.move(session, self._master.clock, row, ExperimentState.DELETED)
            for drop, _ in DROPS:
                await drop(session, experiment_id, None)
            await chunk_rows.drop_cursors(session, experiment_id)
            await facts.drop(session, experiment_id)
            await upkeep.drop(session, experiment_id)

    async def _drop_contexts(self) -> None:
        """An hour after the last reference; a context that was only just sent may be named by the next request."""
        async with self._database.read() as session:
            named = await experiment_rows.referenced_contexts(session)
        now = self._master.clock.now().timestamp()
        blobs = self._master.blobs
        for digest, changed in await asyncio.to_thread(blobs.all):
            if digest not in named and now - changed > KEEP_UNREFERENCED_SECONDS:
                await asyncio.to_thread(blobs.drop, digest)


def _remove_folders(storage: dict[str, Any], uuids: Sequence[str]) -> dict[str, str]:
    """Blocking. Which folders could not be removed, and why; one that is not there any more is no failure."""
    failed: dict[str, str] = {}
    for uuid in uuids:
        folder = None
        try:
            folder = folder_of(storage, uuid)
            shutil.rmtree(folder)
        except FileNotFoundError as error:
            if folder is None or os.path.lexists(folder):
                failed[uuid] = str(error)
        except Exception as error:  # whatever it is, the others are removed and the user reads it
            failed[uuid] = str(error) or type(error).__name__
    return failed


def _summary(problems: Sequence[str]) -> str:
    told = "; ".join(problems[:MAX_PROBLEMS])
    more = len(problems) - MAX_PROBLEMS
    return f"{told}; and {more} more" if more > 0 else told


def _lots(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (values[start : start + size] for start in range(0, len(values), size))
