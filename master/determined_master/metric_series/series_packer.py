"""Packs the reports of trials into series, in short transactions."""

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from determined.link.isolation import SharedFailure
from determined_master.db.session import Database
from determined_master.metric_series import repository
from determined_master.metric_series.downsampling import FACTORS, SIZE, reduce
from determined_master.metric_series.repository import Cursor, Report, StoredSeries, TrialToPack
from determined_master.metric_series.series_points import Points, dump, load, points_of

logger = logging.getLogger(__name__)

MIN_POINTS = 512
"""Minimum reports of a trial that are packed; fewer are read unpacked. At its end the rest is packed, too."""
MIN_POINTS_AT_END = 32
"""Fewer reports of an ended trial stay unpacked: packing them costs more than it saves their readers."""
MAX_REPORTS = 1000
MAX_POINTS = 100_000
PAGE = 100
PAGE_PAUSE_SECONDS = 0.002
"""Pause after each page of reports, which takes the event loop a millisecond: reports that arrive go first."""
SERIES_PER_TRANSACTION = 64


@dataclass(slots=True)
class _Fresh:
    """Points of one series that are not packed yet, each with its report."""

    points: Points = field(default_factory=Points)
    ids: list[int] = field(default_factory=list)


class SeriesPacker:
    """Packs the reports of one trial at a time. ``least_at_end``: minimum reports of an ended trial that are packed."""

    def __init__(self, database: Database, least_at_end: int = MIN_POINTS_AT_END) -> None:
        self._database = database
        self._least_at_end = least_at_end

    def is_short(self, due: TrialToPack) -> bool:
        """Returns True for an ended trial with so few reports that they stay unpacked."""
        return due.has_ended and due.waiting < self._least_at_end

    async def finish(self, trials: Sequence[Cursor]) -> int:
        """Finishes short trials in one transaction and returns their number; 0 leaves them to be packed one by one."""
        if not trials:
            return 0
        try:
            async with self._database.write() as session:
                await repository.finish(session, trials)
        except SharedFailure:
            raise
        except Exception as error:
            logger.info("finishing %d trials together failed; finishing them one by one: %s", len(trials), error)
            return 0
        return len(trials)

    async def pack(self, trial: Cursor, has_ended: bool) -> None:
        """Packs the next reports of a trial: MAX_REPORTS of them, or all that are left."""
        async with self._database.read() as session:
            count, until = await repository.last_of_page(session, trial, MAX_REPORTS)
        if has_ended and count < self._least_at_end:
            until = None
        async with self._database.write() as session:
            version = await repository.reach(session, trial.trial_id, trial.packed_id if until is None else until)
            if until is None:
                if has_ended:
                    await repository.claim(session, trial.trial_id, version, done_run=trial.run_id)
                return
        fresh, until, run = await self._read(trial, until)
        names = sorted(fresh)
        for start in range(0, len(names), SERIES_PER_TRANSACTION):
            some = {name: fresh.pop(name) for name in names[start : start + SERIES_PER_TRANSACTION]}
            if not await self._write(trial, version, until, some):
                return
        async with self._database.write() as session:
            values = {"packed_id": until, **({} if run is None else {"packed_run": run})}
            await repository.claim(session, trial.trial_id, version, **values)

    async def _read(self, trial: Cursor, until: int) -> tuple[dict[tuple[str, str], _Fresh], int, int | None]:
        """Returns the points up to ``until`` or up to the limit, the new bound, and the run at it."""
        fresh: dict[tuple[str, str], _Fresh] = {}
        after, count, run = trial.packed_id, 0, None
        while True:
            async with self._database.read() as session:
                rows = await repository.reports(session, trial, after, until, (), PAGE)
            count += sum(_take(row, fresh) for row in rows)
            if rows:
                after, run = rows[-1].id, rows[-1].run_id
            if len(rows) < PAGE:
                return fresh, until, run
            if count >= MAX_POINTS:
                return fresh, after, run
            await asyncio.sleep(PAGE_PAUSE_SECONDS)

    async def _write(self, trial: Cursor, version: int, until: int, fresh: dict[tuple[str, str], _Fresh]) -> bool:
        async with self._database.read() as session:
            known = {
                (row.group, row.name): row for row in await repository.series_of(session, [trial.trial_id], list(fresh))
            }
            before = await repository.open_chunks(session, list(known.values()), SIZE)
        made = await asyncio.to_thread(_made, trial.trial_id, until, fresh, known, before)
        async with self._database.write() as session:
            if not await repository.claim(session, trial.trial_id, version):
                return False
            for row, rows in made:
                series_id = await repository.save_series(session, row)
                if rows:
                    await repository.save_chunks(session, series_id, rows)
        return True


def _take(row: Report, fresh: dict[tuple[str, str], _Fresh]) -> int:
    epoch, figures = points_of(row.metrics)
    for name, value in figures:
        one = fresh.setdefault((row.group, name), _Fresh())
        one.points.add(row.steps or 0, row.time, epoch, value)
        one.ids.append(row.id)
    return len(figures)


def _made(
    trial_id: int,
    until: int,
    fresh: dict[tuple[str, str], _Fresh],
    known: dict[tuple[str, str], StoredSeries],
    before: dict[int, tuple[int, bytes]],
) -> list[tuple[StoredSeries, list[dict[str, Any]]]]:
    """Returns each series to store, and its chunks from the first changed one on."""
    made: list[tuple[StoredSeries, list[dict[str, Any]]]] = []
    for (group, name), more in fresh.items():
        row = known.get((group, name)) or StoredSeries(0, trial_id, group, name, 0, 0)
        # Some may be packed already: a step was interrupted, or rows were archived.
        skipped = next((i for i, metric_id in enumerate(more.ids) if metric_id > row.packed_id), len(more.ids))
        points, ids = more.points.part(skipped, len(more.ids)), more.ids[skipped:]
        if not ids:
            made.append((row._replace(packed_id=max(row.packed_id, until)), []))
            continue
        full = row.points // SIZE
        if row.id in before:
            first_id, data = before[row.id]
            opened = load(data)
            # Only the first and the last report of a chunk are kept.
            ids = [first_id] * len(opened) + ids
            opened.extend(points)
            points = opened
        rows: list[dict[str, Any]] = []
        for start in range(0, len(points), SIZE):
            rows += chunk_rows_of(points.part(start, start + SIZE), full + start // SIZE, ids[start : start + SIZE])
        made.append((row._replace(points=full * SIZE + len(points), packed_id=max(row.packed_id, until)), rows))
    return made


def chunk_rows_of(points: Points, place: int, ids: Sequence[int]) -> list[dict[str, Any]]:
    """Returns the row of a chunk, and for a full one the rows of its coarser levels."""
    epochs = [epoch for epoch in points.epochs if not math.isnan(epoch)]
    shared = {
        "place": place,
        "points": len(points),
        "first_id": ids[0],
        "last_id": ids[-1],
        "least_batches": min(points.batches),
        "most_batches": max(points.batches),
        "least_time": min(points.times),
        "most_time": max(points.times),
        "least_epoch": min(epochs, default=None),
        "most_epoch": max(epochs, default=None),
        "epochs": len(epochs),
    }
    factors = (1, *FACTORS) if len(points) == SIZE else (1,)
    return [{**shared, "factor": factor, "data": dump(reduce(points, factor))} for factor in factors]
