"""Which checkpoints of an experiment are kept by ``save_experiment_best``, ``save_trial_best``, ``save_trial_latest``.

Pure. Source of the rule: the behaviour of Determined's checkpoint garbage collection.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True)
class Policy:
    """How many checkpoints are kept: the best of the experiment, and the best and the newest of each trial."""

    save_experiment_best: int = 0
    save_trial_best: int = 1
    save_trial_latest: int = 1

    @classmethod
    def of(cls, storage: Mapping[str, Any]) -> "Policy":
        """Returns the policy of a ``checkpoint_storage`` section."""
        given = {name: storage.get(name) for name in cls.__dataclass_fields__}
        return cls(**{name: int(value) for name, value in given.items() if value is not None})


@dataclass(frozen=True)
class Candidate:
    """A completed checkpoint. ``signed_metric``: searcher metric of the validation at its step, negated if larger is
    better; None without one. ``validation_id`` orders equal metrics."""

    uuid: str
    trial_id: int
    steps: int
    signed_metric: float | None = None
    validation_id: int = 0


def superfluous(candidates: Sequence[Candidate], policy: Policy) -> list[str]:
    """Returns the ids of the checkpoints that the policy does not keep, in the order given: the oldest first. Of
    several with the same steps the newest is preferred.

    A checkpoint is kept if it is among the newest of its trial, or if it has a metric and is among the best of its
    trial or of the experiment.

    >>> best, newest = Candidate("a", 1, 10, 0.1, 1), Candidate("b", 1, 20, 0.2, 2)
    >>> superfluous([best, newest], Policy(0, 1, 0))
    ['b']
    """
    place = {each.uuid: number for number, each in enumerate(candidates)}
    measured = [each for each in candidates if each.signed_metric is not None]
    of_experiment = _ranks([measured], partial(_by_metric, place))
    of_trial = _ranks(_by_trial(measured), partial(_by_metric, place))
    by_age = _ranks(_by_trial(candidates), lambda each: (-each.steps, -place[each.uuid]))
    return [
        each.uuid
        for each in candidates
        if by_age[each.uuid] > policy.save_trial_latest
        and (
            each.signed_metric is None
            or (of_experiment[each.uuid] > policy.save_experiment_best and of_trial[each.uuid] > policy.save_trial_best)
        )
    ]


def _by_metric(place: Mapping[str, int], each: Candidate) -> tuple[float, int, int]:
    assert each.signed_metric is not None
    return each.signed_metric, each.validation_id, -place[each.uuid]


def _by_trial(candidates: Iterable[Candidate]) -> Iterable[list[Candidate]]:
    trials: dict[int, list[Candidate]] = defaultdict(list)
    for each in candidates:
        trials[each.trial_id].append(each)
    return trials.values()


def _ranks(groups: Iterable[list[Candidate]], key: Callable[[Candidate], tuple[float, ...]]) -> dict[str, int]:
    """Returns the rank of each checkpoint in its group, from 1."""
    return {each.uuid: rank for group in groups for rank, each in enumerate(sorted(group, key=key), 1)}
