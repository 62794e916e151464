"""Settles ended attempts: applies their outcome to trials, and stores and logs causes of failures."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from determined.config.masking import secret_values
from determined.link.messages import ContainerExit
from determined.states import ExitReason, TrialState
from determined_master import notifications
from determined_master.allocations import exit_line
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.failures import ContainerEnd, cause_of, is_failure, masked
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ContainerRow, ExperimentRow, TrialRow
from determined_master.db.session import WriteSession, notify
from determined_master.events.state_machine import Event
from determined_master.logs import repository as logs
from determined_master.trials import due_queries, repository, whole_limits
from determined_master.trials.log_policies import LogPolicies, Verdict, not_restarted
from determined_master.trials.search_event_repository import add_closed, add_event
from determined_master.trials.states import AttemptEnd, TrialOutcome, decide
from determined_master.trials.whole_limits import WholeLimits

_BY_POLICIES = (ExitReason.RETRIES_CANCELED, ExitReason.IMPOSSIBLE)
"""Ends for which log policies give the reason."""


class Settlement:
    """Every method works inside the caller's session."""

    def __init__(self, clock: Clock, policies: LogPolicies) -> None:
        self._clock = clock
        self._policies = policies

    async def settle(
        self, session: WriteSession, row: TrialRow, experiment: ExperimentRow, ended: AllocationRow
    ) -> None:
        """Settles an ended allocation once."""
        reason = ended.exit_reason or ExitReason.SYSTEM
        is_newest = ended.run_id == row.run_id and row.state.is_live
        is_invalid = is_newest and row.invalid_hp and not row.state.is_stopping
        shown = ExitReason.INVALID_HP if is_invalid else reason
        containers = await allocation_rows.containers_of(session, ended.id)
        cause = _cause(shown, ended, containers, experiment)
        if is_newest:
            attempt = row.restarts + 1
            verdict = await self._policies.verdict(session, ended, experiment)
            asked_by_signal = experiment.config.get("pause") is not None
            limits = await whole_limits.after(session, row, ended, saves_by_itself=asked_by_signal)
            outcome = await self._apply(session, row, experiment, reason, verdict, limits)
            if outcome.reason is ExitReason.NO_CHECKPOINT:
                cause = limits.cause
            if cause is not None and verdict.why and outcome.reason in _BY_POLICIES:
                cause = not_restarted(cause, masked(verdict.why, secret_values(experiment.config)))
            if cause is not None and not is_invalid:
                line = sequel(outcome, reason, cause, attempt=attempt, max_restarts=experiment.config["max_restarts"])
                await self._log(session, ended, line, containers)
                if outcome.reason is ExitReason.RETRIES_CANCELED:
                    await logs.say(session, ended.task_id, ended.id, exit_line.NOT_RETRIED, self._clock.now(), "INFO")
        await exit_line.write(session, self._clock, ended, containers)
        values: dict[str, Any] = {} if ended.settled else {"settled": True}
        if cause is not None:
            values["failure"] = cause
        if values:
            await allocation_rows.change(session, ended, **values)

    async def finish_stopped(self, session: WriteSession, trial_ids: Sequence[int]) -> None:
        """Ends the stopping trials whose attempts are settled, in a constant number of statements."""
        by_state: dict[TrialState, list[due_queries.StoppedTrial]] = defaultdict(list)
        # An allocation that has just ended determines how its trial ends, so it is settled first.
        for each in await due_queries.stopped(session, trial_ids):
            by_state[each.state].append(each)
        for state, trials in by_state.items():
            outcome = decide(AttemptEnd(state, ExitReason.KILLED, 0, 0))
            if outcome.state is None or outcome.reason is None:
                continue
            values: dict[str, Any] = {"exit_reason": outcome.reason, "end_time": self._clock.now(), "closed": True}
            if outcome.state is TrialState.COMPLETED:
                values["progress"] = 1.0
            ids = [each.trial_id for each in trials]
            await repository.MACHINE.move_many(session, self._clock, ids, state, outcome.state, Event(), **values)
            await add_closed(session, [(t.experiment_id, t.trial_id) for t in trials], outcome.reason.value)
            notify(session, *{notifications.experiment(t.experiment_id) for t in trials})
            notify(session, notifications.SEARCH, *(notifications.logs(t.task_id) for t in trials))

    async def _apply(
        self,
        session: WriteSession,
        row: TrialRow,
        experiment: ExperimentRow,
        reason: ExitReason,
        verdict: Verdict,
        limits: WholeLimits,
    ) -> TrialOutcome:
        outcome = decide(
            AttemptEnd(
                state=row.state,
                reason=reason,
                restarts=row.restarts,
                max_restarts=experiment.config["max_restarts"],
                invalid_hp=row.invalid_hp,
                system_failures=row.system_failures,
                cancels_retries=verdict.cancels_retries,
                limits_without_checkpoint=limits.count if limits.count > row.limits_without_checkpoint else 0,
                has_agent_left=verdict.has_agent_left,
            )
        )
        values: dict[str, Any] = {"restarts": outcome.restarts, "system_failures": outcome.system_failures}
        if limits.count != row.limits_without_checkpoint:
            values["limits_without_checkpoint"] = limits.count
        if outcome.state is None:
            retry_at = self._clock.now() + timedelta(seconds=outcome.backoff) if outcome.backoff else None
            await repository.change(session, row, retry_at=retry_at, **values)
            notify(session, notifications.TRIALS)
            return outcome
        if outcome.state is TrialState.ERROR:
            # The experiment index shows the cause.
            values["values_stale"] = True
            notify(session, notifications.COLUMNS)
        if outcome.state is TrialState.COMPLETED and outcome.reason is not ExitReason.INVALID_HP:
            values["progress"] = 1.0
        reason = outcome.reason or ExitReason.ERRORED
        await repository.move(
            session, self._clock, row, outcome.state, exit_reason=outcome.reason, closed=True, **values
        )
        await add_event(session, row.experiment_id, row.id, "closed", {"reason": reason.value})
        notify(session, notifications.SEARCH, notifications.logs(row.task_id))
        return outcome

    async def _log(
        self, session: WriteSession, ended: AllocationRow, line: str, containers: Sequence[ContainerRow]
    ) -> None:
        """Logs the cause and what follows; of several containers also the last lines of the one that failed first."""
        _, _, details = ended.message.partition("\n")
        text = f"{line}\n{details}" if details and len(containers) > 1 else line
        await logs.say(session, ended.task_id, ended.id, text, self._clock.now(), "ERROR")


def _cause(
    reason: ExitReason, ended: AllocationRow, containers: Sequence[ContainerRow], experiment: ExperimentRow
) -> str | None:
    if not is_failure(reason):
        return None
    ends = [ContainerEnd(c.agent_id, ContainerExit.model_validate(c.exit)) for c in containers if c.exit]
    return cause_of(reason, ended.message, ends, secret_values(experiment.config))


def sequel(outcome: TrialOutcome, reason: ExitReason, cause: str, *, attempt: int, max_restarts: int) -> str:
    """Returns the log's line about a failed attempt and what follows. ``attempt`` counts from 1 and leaves out pauses.

    >>> sequel(TrialOutcome(None, None, 1), ExitReason.ERRORED, "exited with code 1", attempt=1, max_restarts=5)
    'attempt 1 of 6 failed: exited with code 1; attempt 2 of 6 follows'
    """
    attempts = max(max_restarts + 1, attempt)
    this = f"attempt {attempt} of {attempts}"
    if outcome.reason is ExitReason.OUT_OF_RESTARTS:
        return f"{this} failed: {cause}; no restart is left (max_restarts: {max_restarts})"
    if reason is ExitReason.IMPOSSIBLE:
        return f"{this} cannot start: {cause} ({exit_line.CANNOT_START})"
    if outcome.state is not None:
        return f"{this} failed: {cause}"
    if reason.is_system_failure:
        when = f" in {outcome.backoff:.0f} s" if outcome.backoff else ""
        return f"{this} was lost: {cause}; it restarts{when}, which does not count against max_restarts"
    return f"{this} failed: {cause}; attempt {attempt + 1} of {attempts} follows"
