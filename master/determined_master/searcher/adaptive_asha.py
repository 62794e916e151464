"""``adaptive_asha``: trials in brackets, compared at rungs as results arrive. ``async_halving`` has one bracket.

The hyperparameters of a trial follow from the experiment's seed, its bracket and its number there, so the set of trials
is the same in whatever order results arrive, and no state of a random generator has to be stored.
"""

import random
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

from determined.config.search_plan import brackets, training_time
from determined.searcher.actions import CANCELED, FAILED
from determined.searcher.sampling import sample
from determined.states import ExitReason
from determined_master.searcher import async_halving as state
from determined_master.searcher.actions import (
    Action,
    Create,
    CreateMore,
    Event,
    Keep,
    LimitsChanged,
    LotDue,
    RungResult,
    SearchContinued,
    Shutdown,
    Stop,
    TrialClosed,
    TrialValidated,
)
from determined_master.searcher.async_halving import Bracket
from determined_master.searcher.ended_trials import all_failed, all_invalid, is_hopeless, ordinal
from determined_master.searcher.method import TRIALS_A_LOT
from determined_master.searcher.step_reports import StepReports
from determined_master.searcher.training_time import Diverged, UnusableReport, metric_of, metrics_of_time, time_of

MAX_TRIALS_A_BRACKET = 2**24


class AdaptiveAsha:
    """Compares the trials of each bracket at its rungs; the worse ones are stopped and never resumed."""

    decides_on_validations = True

    def __init__(self, config: Mapping[str, Any]) -> None:
        searcher = config["searcher"]
        self._searcher = searcher
        self._hparams = config["hyperparameters"]
        self._seed = config["reproducibility"]["experiment_seed"]
        self._records_per_epoch = config.get("records_per_epoch") or 0
        self._metric = searcher["metric"]
        self._smaller_is_better = searcher.get("smaller_is_better", True)
        self._time = training_time(searcher)
        self._limits = [searcher["max_trials"], searcher["max_concurrent_trials"]]
        self._divisor = float(searcher["divisor"])
        plans = brackets(searcher)
        self._brackets = [Bracket(plan, self._divisor, number + 1) for number, plan in enumerate(plans)]
        self._steps = StepReports({self._metric, *metrics_of_time(self._time, self._records_per_epoch)})
        self._is_over = False
        self._is_filling = False
        """True between ``CreateMore`` and ``LotDue``: meanwhile it creates nothing."""

    def initial(self) -> list[Action]:
        return self._fill(*self._brackets)

    def on_event(self, event: Event) -> list[Action]:
        if isinstance(event, SearchContinued):
            return self._continue(event)
        if self._is_over:
            return []
        if isinstance(event, LimitsChanged):
            return self._change_limits(event)
        if isinstance(event, LotDue):
            self._is_filling = False
            return self._fill_all()
        bracket, trial = self._place(event.request_id)
        if isinstance(event, TrialClosed):
            return self._close(bracket, trial, event)
        if bracket.states[trial] != state.RUNNING:
            return []
        return [action for each in self._steps.add(event) for action in self._report(bracket, trial, each)]

    def progress(self, live_progress: float) -> float:
        return sum(bracket.progress for bracket in self._brackets) / len(self._brackets)

    def snapshot(self) -> dict[str, Any]:
        return {
            "over": self._is_over,
            "filling": self._is_filling,
            "limits": list(self._limits),
            "steps": self._steps.snapshot(),
            "brackets": [each.snapshot() for each in self._brackets],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._is_over = snapshot["over"]
        self._is_filling = snapshot.get("filling", False)
        self._limits = list(snapshot["limits"])
        self._steps.restore(snapshot.get("steps", {}))
        # Not from the configuration: the number of brackets depends on limits that may have changed since.
        self._brackets = [
            Bracket.restored(stored, self._divisor, number + 1) for number, stored in enumerate(snapshot["brackets"])
        ]

    def _report(self, bracket: Bracket, trial: int, report: TrialValidated) -> list[Action]:
        request_id = report.request_id
        try:
            metric = metric_of(report, self._metric, smaller_is_better=self._smaller_is_better)
            time = time_of(report, self._time, self._records_per_epoch, lambda: self._size_of_batches(bracket, trial))
        except Diverged as error:
            bracket.fail(trial)
            return [Stop(request_id, f"failed: {error}", failed=True), *self._fill(bracket)]
        except UnusableReport as error:
            self._is_over = True
            return [Shutdown(failed=True, reason=str(error))]
        actions: list[Action] = []
        for result, trains_on in bracket.report(trial, time, metric):
            reason = self._reason(bracket, result, trains_on=trains_on)
            if trains_on:
                actions.append(Keep(request_id, reason, result))
            else:
                actions += [Stop(request_id, reason, result), *self._fill(bracket)]
        return actions

    def _close(self, bracket: Bracket, trial: int, event: TrialClosed) -> list[Action]:
        may_resume = event.reason in (ExitReason.KILLED.value, ExitReason.USER_CANCELED.value)
        last = None if may_resume else self._steps.close(event.request_id)
        if last is not None and event.reason == "completed" and bracket.states[trial] == state.RUNNING:
            actions = self._report(bracket, trial, last)
            if self._is_over:
                return actions
        if bracket.states[trial] not in (state.RUNNING, state.STOPPED):
            return []
        bracket.close(trial, _state_after(event.reason))
        if event.reason == "invalid_hp" and self._is_hopeless():
            self._is_over = True
            return [Shutdown(canceled=True, reason=all_invalid(self._count()[state.INVALID]))]
        actions = self._fill(bracket)
        if all(each.is_over for each in self._brackets):
            self._is_over = True
            actions.append(self._shutdown())
        return actions

    def _count(self) -> dict[str, int]:
        """Returns the number of trials in each state."""
        return {name: sum(each.counts[name] for each in self._brackets) for name in self._brackets[0].counts}

    def _is_hopeless(self) -> bool:
        count = self._count()
        has_valid = any(count[name] for name in count if name not in (state.INVALID, state.RUNNING))
        has_results = has_valid or any(bracket.rungs[0] for bracket in self._brackets)
        return not has_results and is_hopeless(count[state.INVALID], self._limits[0])

    def _shutdown(self) -> Shutdown:
        count = self._count()
        total = sum(count.values())
        failed = count[state.FAILED] == total
        reason = all_failed(total) if failed else ""
        return Shutdown(failed=failed, canceled=count[state.CANCELED] == total, reason=reason)

    def _place(self, request_id: str) -> tuple[Bracket, int]:
        """Returns the bracket of a trial and its number there."""
        place = int(request_id[-8:], 16)
        return self._brackets[place >> 24], place & (MAX_TRIALS_A_BRACKET - 1)

    def _continue(self, event: SearchContinued) -> list[Action]:
        self._is_over, self._is_filling = False, False
        known = Counter(self._place(request_id)[0].number for request_id in event.known)
        for bracket in self._brackets:
            bracket.forget_after(known[bracket.number])
        actions: list[Action] = []
        for request_id in event.resumed:
            bracket, trial = self._place(request_id)
            if not bracket.resume(trial):
                actions.append(Stop(request_id, "stopped at a rung before the search was continued"))
        return actions + self._fill_all()

    def _change_limits(self, event: LimitsChanged) -> list[Action]:
        changed = (event.max_trials, event.max_concurrent_trials)
        self._limits = [old if new is None else new for old, new in zip(self._limits, changed, strict=True)]
        rungs = [len(bracket.rungs) for bracket in self._brackets]
        plans = brackets(self._searcher, max_trials=self._limits[0], max_concurrent=self._limits[1], rungs=rungs)
        for bracket, plan in zip(self._brackets, plans, strict=True):
            bracket.max_trials, bracket.concurrent = plan.trials, plan.concurrent
        return self._fill_all()

    def _fill_all(self) -> list[Action]:
        """Creates trials in all brackets; ends the search if none is wanted and all have ended."""
        actions = self._fill(*self._brackets)
        if all(each.is_over for each in self._brackets):
            self._is_over = True
            actions.append(self._shutdown())
        return actions

    def _fill(self, *brackets: Bracket) -> list[Action]:
        """Creates trials until each bracket has as many as it may have at once, and at most a lot."""
        actions: list[Action] = []
        for bracket in brackets:
            while bracket.wants_trial and not self._is_filling:
                if len(actions) == TRIALS_A_LOT:
                    self._is_filling = True
                    actions.append(CreateMore())
                else:
                    actions.append(self._create(bracket))
        return actions

    def _create(self, bracket: Bracket) -> Create:
        trial = bracket.add_trial()
        rng = self._random(bracket, trial)
        request_id = _request_id(rng, bracket.number - 1, trial)
        hparams = sample(self._hparams, rng)
        where = f" in bracket {bracket.number}" if len(self._brackets) > 1 else ""
        reason = f"created{where}: trial {trial + 1} of {bracket.max_trials + bracket.counts[state.INVALID]}"
        return Create(request_id, hparams, rng.getrandbits(31), reason)

    def _random(self, bracket: Bracket, trial: int) -> random.Random:
        return random.Random(f"{self._seed}/{bracket.number}/{trial}")

    def _size_of_batches(self, bracket: Bracket, trial: int) -> object:
        rng = self._random(bracket, trial)
        _request_id(rng, bracket.number - 1, trial)
        return sample(self._hparams, rng).get("global_batch_size")

    def _reason(self, bracket: Bracket, result: RungResult, *, trains_on: bool) -> str:
        place = f"{ordinal(result.rank)} of {result.count}"
        metric = result.metric if self._smaller_is_better else -result.metric
        measured = f"({self._metric} {metric:.6g} after {result.time:g} {self._time.unit})"
        if trains_on:
            return f"kept at rung {result.rung}: {place}, {result.kept} kept {measured}"
        if result.rung == len(bracket.rungs):
            return f"finished the last rung, {result.rung}: {place} {measured}"
        return f"stopped at rung {result.rung}: {place}, {result.kept} kept {measured}"


def _request_id(rng: random.Random, bracket: int, trial: int) -> str:
    """Returns a random id that ends with the trial's place in the search."""
    return str(uuid.UUID(int=rng.getrandbits(96) << 32 | bracket << 24 | trial, version=4))


def _state_after(reason: str) -> str:
    if reason == "invalid_hp":
        return state.INVALID
    if reason in FAILED:
        return state.FAILED
    return state.CANCELED if reason in CANCELED else state.DONE
