"""Reads a curve: from packed chunks, coarse ones for long series, and unpacked reports."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from determined_master.db.session import ReadSession
from determined_master.metric_series import repository
from determined_master.metric_series.downsampling import SIZE, factor_for, inside, reduce, thin
from determined_master.metric_series.repository import Cursor, Extent, StoredSeries
from determined_master.metric_series.series_points import Axis, Points, load, load_into, points_of

Name = tuple[str, str]
"""Group and name of a metric."""
BATCH_TRIALS = 16
PAGE = 500


@dataclass(frozen=True)
class Question:
    """``start`` and ``end``: inclusive bounds on the axis: batches, epochs, microseconds."""

    axis: Axis = "batches"
    start: float | None = None
    end: float | None = None
    most: int = 500
    after: Mapping[int, int] | None = None
    """Instead of ``start`` and ``end``: by trial, the time in microseconds from which on its points are selected."""

    def of(self, trial_id: int) -> "Question":
        """Returns the question about one trial."""
        if self.after is None:
            return self
        return replace(self, axis="time", start=self.after.get(trial_id), end=None, after=None)

    def widest(self, trial_ids: Collection[int]) -> "Question":
        """Returns the question whose window contains those about each of these trials."""
        if self.after is None:
            return self
        starts = [self.after.get(trial_id) for trial_id in trial_ids]
        earliest = None if None in starts else min((start for start in starts if start is not None), default=None)
        return replace(self, axis="time", start=earliest, end=None, after=None)

    @property
    def is_whole(self) -> bool:
        """True if every point is selected and has an x."""
        return self.start is None and self.end is None and self.axis != "epochs"


@dataclass(frozen=True)
class SelectedSeries:
    trial_id: int
    group: str
    name: str
    points: Points
    count: int
    """Number of selected points before downsampling."""
    total: int
    """Number of points of the series, selected or not."""


@dataclass(slots=True)
class _Parts:
    """Parts of a series: chunks that are selected whole, and pieces of which each point is selected separately."""

    row: StoredSeries
    total: int
    whole: list[int] = field(default_factory=list)
    partial: list[int] = field(default_factory=list)
    pieces: dict[int, tuple[Points, Sequence[int] | None]] = field(default_factory=dict)
    """Pieces by the place of their chunk, with the selected points; None: all."""

    def count(self) -> int:
        counted = (len(points) if some is None else len(some) for points, some in self.pieces.values())
        return SIZE * len(self.whole) + sum(counted)


async def read(
    session: ReadSession, trials: Sequence[Cursor], names: Sequence[Name], question: Question
) -> AsyncIterator[SelectedSeries]:
    """Yields one series for each trial and name, in that order. Few trials at a time, since each may have many
    unpacked reports."""
    step = max(1, BATCH_TRIALS // max(1, len(names)))
    stored = {(r.trial_id, r.group, r.name): r for r in await repository.series_of(session, _ids(trials), names)}
    with_news = {trial.trial_id for trial in await repository.with_news(session, trials)}
    for start in range(0, len(trials), step):
        some = trials[start : start + step]
        rows = [
            stored.get((trial.trial_id, *name)) or StoredSeries(0, trial.trial_id, *name, 0, 0)
            for trial in some
            for name in names
        ]
        fresh = await _fresh(session, [trial for trial in some if trial.trial_id in with_news], rows)
        parts = await _parts(session, rows, fresh, question)
        factors = [factor_for(part.count(), question.most) for part in parts]
        data: dict[tuple[int, int], bytes] = {}
        for factor in set(factors):
            wanted = {p.row.id: p.whole for p, own in zip(parts, factors, strict=True) if own == factor}
            data |= await repository.chunks(session, factor, wanted)
        for found in await asyncio.to_thread(_answers, parts, factors, data, question):
            yield found


def _ids(trials: Iterable[Cursor]) -> list[int]:
    return [trial.trial_id for trial in trials]


async def _fresh(
    session: ReadSession, trials: Sequence[Cursor], rows: Sequence[StoredSeries]
) -> dict[tuple[int, str, str], Points]:
    """Points of reports that are not packed, of trials that have some."""
    packed = {(row.trial_id, row.group, row.name): row.packed_id for row in rows}
    groups = {row.group for row in rows}
    points_by_name: dict[tuple[int, str, str], Points] = {}
    for trial in trials:
        after = trial.packed_id
        while page := await repository.reports(session, trial, after, None, groups, PAGE):
            after = page[-1].id
            for report in page:
                epoch, figures = points_of(report.metrics)
                for name, value in figures:
                    key = (trial.trial_id, report.group, name)
                    if report.id > packed.get(key, report.id):
                        points_by_name.setdefault(key, Points()).add(report.steps or 0, report.time, epoch, value)
            if len(page) < PAGE:
                break
    return points_by_name


async def _parts(
    session: ReadSession,
    rows: Sequence[StoredSeries],
    fresh: dict[tuple[int, str, str], Points],
    question: Question,
) -> list[_Parts]:
    parts = [_Parts(row, row.points + len(fresh.get((row.trial_id, row.group, row.name), ()))) for row in rows]
    stored = [row.id for row in rows if row.id]
    extents: dict[int, list[Extent]] = {}
    widest = question.widest({row.trial_id for row in rows})
    if stored and not all(question.of(row.trial_id).is_whole for row in rows):
        for extent in await repository.extents(session, stored, widest.axis, widest.start, widest.end):
            extents.setdefault(extent.series_id, []).append(extent)
    for part in parts:
        full = part.row.points // SIZE
        own = question.of(part.row.trial_id)
        if own.is_whole:
            part.whole = list(range(full))
            continue
        for extent in extents.get(part.row.id, ()):
            if extent.place < full:
                _sort(part, extent, own)
    opened = await repository.open_chunks(session, [row for row in rows if row.id], SIZE)
    data = await repository.chunks(session, 1, {part.row.id: part.partial for part in parts if part.partial})
    for part in parts:
        for place in part.partial:
            points = load(data[part.row.id, place])
            own = question.of(part.row.trial_id)
            part.pieces[place] = points, inside(points, own.axis, own.start, own.end)
        _add_rest(part, opened.get(part.row.id), fresh, question.of(part.row.trial_id))
    return parts


def _sort(part: _Parts, extent: Extent, question: Question) -> None:
    """Adds a chunk that is selected wholly or partly."""
    start, end = question.start, question.end
    is_whole = (start is None or start <= extent.least) and (end is None or extent.most <= end)
    if question.axis == "epochs":
        is_whole = is_whole and extent.epochs == extent.points
    (part.whole if is_whole else part.partial).append(extent.place)


def _add_rest(
    part: _Parts,
    opened: tuple[int, bytes] | None,
    fresh: dict[tuple[int, str, str], Points],
    question: Question,
) -> None:
    """Adds the last chunk and unpacked reports, cut at the boundaries of later chunks."""
    row = part.row
    rest = load(opened[1]) if opened is not None else Points()
    rest.extend(fresh.get((row.trial_id, row.group, row.name), Points()))
    for start in range(0, len(rest), SIZE):
        points = rest.part(start, start + SIZE)
        some = None if question.is_whole else inside(points, question.axis, question.start, question.end)
        part.pieces[row.points // SIZE + start // SIZE] = points, some


def _answers(
    parts: Sequence[_Parts], factors: Sequence[int], data: dict[tuple[int, int], bytes], question: Question
) -> list[SelectedSeries]:
    answers = []
    for part, factor in zip(parts, factors, strict=True):
        points = Points()
        for place in sorted([*part.whole, *part.pieces]):
            if (piece := part.pieces.get(place)) is not None:
                points.extend(reduce(piece[0], factor, piece[1]))
            else:
                load_into(points, data[part.row.id, place])
        row = part.row
        thinned = thin(points, question.of(row.trial_id).axis, question.most)
        answers.append(SelectedSeries(row.trial_id, row.group, row.name, thinned, part.count(), part.total))
    return answers


def known_and_missing(asked: Collection[int], known: dict[int, Cursor]) -> tuple[list[Cursor], list[int]]:
    """Returns known and missing trials without duplicates, in the given order."""
    order = list(dict.fromkeys(asked))
    return [known[i] for i in order if i in known], [i for i in order if i not in known]
