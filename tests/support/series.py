"""Requests curves, packs and stores series directly, and computes expected answers without packing."""

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

from tests.support.cluster import Cluster
from tests.support.database_rows import write_rows

from determined_master.json_numbers import outward
from determined_master.loops.packing import PackingLoop
from determined_master.metric_series.downsampling import SIZE, factor_for, inside, reduce, thin
from determined_master.metric_series.series_packer import MIN_POINTS
from determined_master.metric_series.series_points import Points

Point = tuple[int, int, float, float | None]
"""Steps, microseconds, value, epoch."""


async def series(cluster: Cluster, **fields: Any) -> dict[str, Any]:
    body = {"trialIds": [1], "metrics": [{"group": "training", "name": "loss"}], "x": "batches", **fields}
    answer = await cluster.post("/detent/series", body)
    assert answer.status_code == 200, answer.text
    curves: dict[str, Any] = answer.json()
    return curves


async def packing(cluster: Cluster, *, least: int = MIN_POINTS, least_at_end: int = 1, steps: int = 1000) -> None:
    """Packs the series with at least so many reports, or those of ended trials. ``steps``: maximum number of ticks."""
    work = PackingLoop(cluster.master.database, lambda: 0, least=least, least_at_end=least_at_end)
    for _ in range(steps):
        if await work.tick() is None:
            return


async def store(cluster: Cluster, points: Sequence[Point], *, name: str = "loss") -> None:
    """Stores reports of trial 1, run 1, in the database, bypassing the writer, which keeps no state of them. Runs
    outside the event loop, which may have to end a transaction of the master first."""
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
    """Returns batches, times, values and the count of the expected answer, computed from all points at once."""
    whole = Points()
    for steps, at, value, epoch in points:
        whole.add(steps, at, math.nan if epoch is None else epoch, value)
    scale = 1_000_000 if x == "time" else 1
    bounds = [None if bound is None else bound * scale for bound in (start, end)]
    chunks = [whole.part(i, i + SIZE) for i in range(0, len(whole), SIZE)]
    selected = [inside(chunk, x, *bounds) for chunk in chunks]
    count = sum(map(len, selected))
    factor = factor_for(count, maxPoints)
    reduced = Points()
    for chunk, some in zip(chunks, selected, strict=True):
        reduced.extend(reduce(chunk, factor, some))
    thinned = thin(reduced, x, maxPoints)
    times = [at / 1_000_000 for at in thinned.times]
    return list(thinned.batches), times, [str(outward(value)) for value in thinned.values], count
