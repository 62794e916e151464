"""Parts of the streamed metric routes: samples, snapshots, batches and names."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from determined.errors import BadRequest
from determined_master import notifications
from determined_master.api.queries.metric_names import named
from determined_master.api.schemas.base import Wire
from determined_master.api.schemas.metrics import (
    BatchesPart,
    DataPoint,
    MetricName,
    MetricNamesPart,
    SampledTrial,
    SamplePart,
    SnapshotPart,
    SnapshotTrial,
)
from determined_master.db.models import TrialRow
from determined_master.db.models.base import from_micros
from determined_master.db.session import Database, ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.json_numbers import outward
from determined_master.metric_series import repository
from determined_master.metric_series.series import Name, Question, known_and_missing, read
from determined_master.metric_series.series_points import Points
from determined_master.trials import repository as trial_rows

TYPES = {"training": "METRIC_TYPE_TRAINING", "validation": "METRIC_TYPE_VALIDATION"}
_GROUPS = {word: group for group, word in TYPES.items()}
MAX_TRIALS = 25
DEFAULT_POINTS, MAX_POINTS, MIN_POINTS = 200, 5000, 10
MARGIN = 5


def group_of(group: str, metric_type: str) -> str:
    """Returns the group; a metric's type is the older name for it."""
    found = group or _GROUPS.get(metric_type, "")
    if not found:
        raise BadRequest("give group or metricType")
    return found


LONGEST_PERIOD = 24 * 3600


def bounded(start: int, end: int, most: int) -> Question:
    """Returns the question for a range. 0 means no bound, as in the older API."""
    return Question(
        start=start or None,
        end=end or None,
        most=min(MAX_POINTS, max(MIN_POINTS, most)) if most > 0 else DEFAULT_POINTS,
    )


async def parts(
    database: Database, experiment_ids: Sequence[int], period: int, part: Callable[[ReadSession], Awaitable[Wire]]
) -> AsyncIterator[Wire]:
    """Yields a part, and with a period another one after each change, at most once a period, until the experiments have
    ended. Each part uses a session of its own."""
    last: Wire | None = None
    async with database.notifications.subscribe(notifications.SHUTDOWN) as listener:
        while True:
            async with database.read() as session:
                rows = await experiment_rows.get_many(session, experiment_ids)
                made = await part(session)
            if made != last:
                yield made
            last = made
            if period <= 0 or database.notifications.closing or all(row.state.is_terminal for row in rows):
                return
            await listener.wait(min(period, LONGEST_PERIOD))


async def metric_names(session: ReadSession, experiment_ids: Sequence[int]) -> MetricNamesPart:
    trials = [trial for i in dict.fromkeys(experiment_ids) for trial in await trial_rows.of_experiment(session, i)]
    experiments = await experiment_rows.get_many(session, experiment_ids)
    metrics = named(trial.summary_metrics for trial in trials)
    return MetricNamesPart(
        metric_names=[MetricName(group=metric.group, name=metric.name) for metric in metrics],
        searcher_metrics=sorted({experiment.searcher_metric for experiment in experiments}),
        training_metrics=[metric.name for metric in metrics if metric.group == "training"],
        validation_metrics=[metric.name for metric in metrics if metric.group == "validation"],
    )


async def batches(session: ReadSession, experiment_id: int, name: Name) -> BatchesPart:
    """Returns the batches of a metric; of a long series those of the drawn points."""
    trials = await trial_rows.of_experiment(session, experiment_id)
    found = await _curves(session, [trial.id for trial in trials], [name], Question(most=MAX_POINTS))
    return BatchesPart(batches=sorted({b for curve in found.values() for b in curve[name].batches}))


async def sample(
    session: ReadSession, trial_ids: Sequence[int], names: Sequence[Name], question: Question
) -> dict[int, dict[str, list[DataPoint]]]:
    """Returns points by trial and group. Values of several metrics at one time form one point."""
    curves = await _curves(session, trial_ids, names, question)
    return {
        trial_id: {
            group: _together({name: points for (own, name), points in by_name.items() if own == group})
            for group in dict.fromkeys(group for group, _ in names)
        }
        for trial_id, by_name in curves.items()
    }


async def snapshot(session: ReadSession, experiment_id: int, name: Name, at: int, margin: int) -> SnapshotPart:
    """Returns what each trial reported at ``at`` batches, or nearest to it within the margin."""
    reach = margin or MARGIN
    question = Question(start=at - reach, end=at + reach, most=MAX_POINTS)
    trials = await trial_rows.of_experiment(session, experiment_id)
    curves = await _curves(session, [trial.id for trial in trials], [name], question)
    samples = []
    for trial in trials:
        points = curves[trial.id][name]
        if len(points):
            nearest = min(range(len(points)), key=lambda i: (abs(points.batches[i] - at), i))
            samples.append(
                SnapshotTrial(
                    trial_id=trial.id,
                    hparams=trial.hparams,
                    metric=outward(points.values[nearest]),
                    batches_processed=points.batches[nearest],
                )
            )
    return SnapshotPart(trials=samples)


class Samples:
    """Parts with the best trials of an experiment, and which were added and removed since the previous part."""

    def __init__(self, experiment_id: int, name: Name, question: Question, most: int) -> None:
        self._experiment_id = experiment_id
        self._name = name
        self._question = question
        self._most = max(0, most)
        self._shown: list[int] = []

    async def part(self, session: ReadSession) -> SamplePart:
        experiment = await experiment_rows.get(session, self._experiment_id)
        trials = await trial_rows.of_experiment(session, self._experiment_id)
        best = sorted(trials, key=lambda trial: _rank(trial, experiment.smaller_is_better))[: self._most]
        sampled = await sample(session, [trial.id for trial in best], [self._name], self._question)
        ids = [trial.id for trial in best]
        before, self._shown = self._shown, ids
        return SamplePart(
            trials=[
                SampledTrial(trial_id=trial.id, hparams=trial.hparams, data=sampled[trial.id][self._name[0]])
                for trial in best
            ],
            promoted_trials=[i for i in ids if i not in before],
            demoted_trials=[i for i in before if i not in ids],
        )


def _rank(trial: TrialRow, smaller_is_better: bool) -> tuple[bool, float, int]:
    value = trial.searcher_metric_value
    if value is None:
        return True, 0.0, trial.id
    return False, value if smaller_is_better else -value, trial.id


async def _curves(
    session: ReadSession, trial_ids: Sequence[int], names: Sequence[Name], question: Question
) -> dict[int, dict[Name, Points]]:
    known, _ = known_and_missing(trial_ids, await repository.cursors(session, trial_ids))
    # Without points for a trial of an experiment that is being deleted: its series are no longer read.
    curves: dict[int, dict[Name, Points]] = {trial_id: {name: Points() for name in names} for trial_id in trial_ids}
    async for found in read(session, known, names, question):
        curves[found.trial_id][found.group, found.name] = found.points
    return curves


def _together(curves: dict[str, Points]) -> list[DataPoint]:
    by_place: dict[tuple[int, int], DataPoint] = {}
    for name, points in curves.items():
        for steps, time, epoch, value in zip(points.batches, points.times, points.epochs, points.values, strict=True):
            point = by_place.get((steps, time))
            if point is None:
                epoch_or_none = epoch if epoch == epoch else None
                point = by_place[steps, time] = DataPoint(batches=steps, time=from_micros(time), epoch=epoch_or_none)
                point.values = {}
            point.values[name] = value
    return [by_place[key] for key in sorted(by_place)]
