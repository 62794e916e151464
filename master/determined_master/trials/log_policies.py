"""What log policies say about a failed attempt: whether its trial restarts, and without which agents."""

from collections.abc import Sequence
from dataclasses import dataclass

from determined.states import ExitReason
from determined_master.allocations.failures import MAX_CHARACTERS
from determined_master.db.models import AllocationRow, ExperimentRow, LogPolicyMatchRow
from determined_master.db.session import ReadSession
from determined_master.jobs import repository as jobs
from determined_master.logs import policy_match_repository
from determined_master.logs.policy_match_repository import policy_of
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.trials.slot_requests import trial_groups

MAX_LINE_CHARACTERS = 160


@dataclass(frozen=True)
class Verdict:
    """``why``: why the trial does not restart; empty if it may."""

    cancels_retries: bool = False
    has_agent_left: bool = True
    why: str = ""


class LogPolicies:
    def __init__(self, managers: ResourceManagers, *, ends_impossible: bool) -> None:
        """``ends_impossible``: True if what a pool can never hold ends instead of waiting (``launch_error``)."""
        self._managers = managers
        self._ends_impossible = ends_impossible

    async def verdict(self, session: ReadSession, ended: AllocationRow, experiment: ExperimentRow) -> Verdict:
        """Returns what the matches of the trial's attempts say about an attempt that has ended."""
        if ended.exit_reason is not ExitReason.ERRORED:
            return Verdict()
        matches = await policy_match_repository.matches_of(session, ended.task_id)
        own = next((m for m in matches if m.allocation_id == ended.id and m.action == "cancel_retries"), None)
        if own is not None:
            return Verdict(cancels_retries=True, why=_canceled(own))
        excluding = [m for m in matches if m.action == "exclude_node" and m.agent_id and not m.is_void]
        if not excluding or not self._ends_impossible:
            return Verdict()
        pool = (await jobs.get(session, experiment.job_id)).pool
        agents = frozenset(m.agent_id for m in excluding if m.agent_id)
        reason = await self._managers.validate(session, pool, trial_groups(experiment.config, agents))
        if reason is None:
            return Verdict()
        return Verdict(has_agent_left=False, why=_excluded(excluding, reason))


def _canceled(match: LogPolicyMatchRow) -> str:
    pattern = f" (/{match.pattern}/)" if match.name else ""
    return f"{policy_of(match).title}{pattern} matched the line “{_cut(match.line.strip(), MAX_LINE_CHARACTERS)}”"


def _excluded(matches: Sequence[LogPolicyMatchRow], reason: str) -> str:
    agents = ", ".join(sorted({str(match.agent_id) for match in matches}))
    return f"{policy_of(matches[-1]).title} excludes {agents}, and a trial {reason}"


def not_restarted(cause: str, why: str) -> str:
    """Returns the cause of a failure together with why nothing follows, not longer than a cause may be.

    >>> not_restarted("exit code 1", "log policy /oom/ matched the line “oom”")
    'exit code 1; not restarted: log policy /oom/ matched the line “oom”'
    """
    end = _cut(f"; not restarted: {why}", MAX_CHARACTERS * 4 // 5)
    return _cut(cause, MAX_CHARACTERS - len(end)) + end


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
