"""Curves asked for, packed and stored by hand; and the expected answer, computed without any packing."""

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

from tests.support.cluster import Cluster
from tests.support.database_rows import write_rows

from determined_master.json_numbers import outward
from determined_master.metric_series import series_packer as packs
from determined_master.metric_series.downsampling import SIZE, factor_for, inside, reduce, thin
from determined_master.metric_series.series_points import Points

Point = tuple[int, int, float, float | None]
"""Steps, microseconds, value, epoch."""


async def series(cluster: Cluster, **asked: Any) -> dict[str, Any]:
    body = {"trialIds": [1], "metrics": [{"group": "training", "name": "loss"}], "x": "batches", **asked}
    answer = await cluster.post("/detent/series", body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def packing(cluster: Cluster, *, least: int = packs.MIN_POINTS, least_at_end: int = 1, steps: int = 1000) -> None:
    """Packs what there is of at least so many reports, or at the end of a trial; ``steps`` cuts it short."""
    work = packs.SeriesPacker(cluster.master.database, lambda: 0, least=least, least_at_end=least_at_end)
    for _ in range(steps):
        if await work.tick() is None:
            return


async def store(cluster: Cluster, points: Sequence[Point], *, name: str = "loss") -> None:
    """Reports of trial 1, run 1, past the writer: it forgets nothing that it would have known. Beside the event loop,
    which may have a transaction of the master's to end before this one can begin."""
    rows = [
        (at, steps, json.dumps({name: outward(value)} | ({} if epoch is None else {"epochs": epoch})))
        for steps, at, value, epoch in points
    ]
    statement = (
        'INSERT INTO metrics (trial_id, run_id, "group", reported_at, steps, metrics, archived)'
        " VALUES (1, 1, 'training', ?, ?, ?, 0)"
    )
    await asyncio.to_thread(write_rows, cluster.master.settings.data, statement, rows)


def oracle(
    points: Sequence[Point], x: Any = "batches", start: Any = None, end: Any = None, maxPoints: int = 500
) -> tuple[list[int], list[float], list[str], int]:
    """Batches, times, values and the count of an answer, from all points at once."""
    whole = Points()
    for steps, at, value, epoch in points:
        whole.add(steps, at, math.nan if epoch is None else epoch, value)
    scale = 1_000_000 if x == "time" else 1
    bounds = [None if bound is None else bound * scale for bound in (start, end)]
    chunks = [whole.part(i, i + SIZE) for i in range(0, len(whole), SIZE)]
    asked = [inside(chunk, x, *bounds) for chunk in chunks]
    count = sum(map(len, asked))
    factor = factor_for(count, maxPoints)
    reduced = Points()
    for chunk, some in zip(chunks, asked, strict=True):
        reduced.extend(reduce(chunk, factor, some))
    left = thin(reduced, x, maxPoints)
    times = [at / 1_000_000 for at in left.times]
    return list(left.batches), times, [str(outward(value)) for value in left.values], count
