"""Compares arriving lines with the log policies of their attempts. Runs in the group-commit writer's thread."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from sqlalchemy import Connection

from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.session import ReadSession
from determined_master.logs import policy_match_repository as repository
from determined_master.logs.line import LogLine
from determined_master.logs.policies import SECONDS_A_BATCH, AttemptPolicies, Policy
from determined_master.logs.policy_match_repository import Attempt

MAX_ATTEMPTS = 4096
"""Attempts whose policies are kept in memory; those of others are read again."""


@dataclass(frozen=True)
class _SearchedLines:
    """``found``: index of a line and the policy that it matches first. ``is_off``: searching took too long."""

    found: list[tuple[int, Policy]]
    is_off: bool


class PolicyScan:
    """A policy matches once for each attempt. What it has done is in the database: after a crash, and after a
    transaction that was undone, it is read again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: OrderedDict[str, tuple[Attempt, AttemptPolicies] | None] = OrderedDict()
        """By allocation id; None for what has no policies: a command, or a trial that has ended."""
        self._topics: set[str] = set()
        self._searched: dict[int, _SearchedLines] = {}
        """What was searched before the transaction, by the id of the first of the lines, which are the caller's."""

    async def searches(self, session: ReadSession, batches: Sequence[Sequence[LogLine]]) -> Callable[[], None]:
        """Returns work for a thread, before the transaction that stores these lines: it searches them, which may take
        long, for the policies of their attempts. ``lines_after`` only records what it has found."""
        runs: list[tuple[list[LogLine], AttemptPolicies]] = []
        known: dict[tuple[str, str | None], list[Policy]] = {}
        for lines in batches:
            for key, some in groupby(lines, key=_attempt_of):
                if key not in known:
                    known[key] = await self._open(session, *key)
                if known[key]:
                    # Each run has a copy: one that was stored before may match first.
                    runs.append((list(some), AttemptPolicies(list(known[key]))))
        return partial(self._search, runs)

    def _search(self, runs: Sequence[tuple[list[LogLine], AttemptPolicies]]) -> None:
        self._searched = {}
        for lines, remaining in runs:
            found = list(remaining.matches(line.log for line in lines))
            self._searched[id(lines[0])] = _SearchedLines(found, is_off=remaining.is_off)

    async def _open(self, session: ReadSession, task_id: str, allocation_id: str | None) -> list[Policy]:
        """Returns the policies of an attempt that may not have matched yet."""
        if allocation_id is None:
            allocation_id = await repository.newest_allocation_of(session, task_id)
        if allocation_id is None:
            return []
        if allocation_id in self._attempts:
            found = self._attempts[allocation_id]
            return [] if found is None or found[1].is_off else list(found[1].open)
        return await repository.listed(session, task_id, allocation_id)

    def forget(self) -> None:
        self._attempts.clear()
        self._topics.clear()

    def take_topics(self) -> set[str]:
        """Returns what to publish for the matches since the last call."""
        topics, self._topics = self._topics, set()
        return topics

    def lines_after(self, connection: Connection, lines: Sequence[LogLine]) -> list[LogLine]:
        """Records matches. Returns lines of the master about what follows, to be stored after ``lines``."""
        added: list[LogLine] = []
        for (task_id, allocation_id), some in groupby(lines, key=_attempt_of):
            found = self._policies(connection, task_id, allocation_id)
            if found is not None and found[1].open and not found[1].is_off:
                added += self._scan(connection, *found, list(some))
        return added

    def _scan(
        self, connection: Connection, attempt: Attempt, policies: AttemptPolicies, lines: Sequence[LogLine]
    ) -> list[LogLine]:
        now = self._clock.now()
        added: list[str] = []
        searched = self._searched.pop(id(lines[0]), None)
        found = policies.matches(line.log for line in lines) if searched is None else policies.take(searched.found)
        for index, policy in found:
            agent_id = lines[index].agent_id or repository.agent_of(connection, attempt, lines[index].container_id)
            repository.add(connection, attempt, policy, lines[index].log, agent_id, now)
            if sequel := policy.sequel(agent_id):
                # Tools made for Determined search for the end of the line.
                is_excluded = policy.action == "exclude_node" and agent_id is not None
                end = f"; therefore will not schedule on {agent_id}" if is_excluded else ""
                added.append(f"{policy.title} matched a line: {sequel}{end}")
            self._topics |= {notifications.EVENTS, notifications.experiment(attempt.experiment_id)}
        if searched is not None and searched.is_off:
            policies.is_off = True
        if policies.is_off:
            repository.note_off(connection, attempt, now)
            added.append(
                f"log policies: comparing lines took longer than {SECONDS_A_BATCH} s; "
                "the rest of this attempt is not compared. Simplify the patterns"
            )
            self._topics.add(notifications.EVENTS)
        return [
            LogLine(attempt.task_id, text, now, "WARNING", attempt.allocation_id, source="master") for text in added
        ]

    async def may_match(self, session: ReadSession, lines: Sequence[LogLine]) -> bool:
        """Returns True if one of the lines of a container may match a policy of its attempt. Records nothing."""
        if not lines or lines[0].allocation_id is None:
            return False
        task_id, allocation_id = lines[0].task_id, lines[0].allocation_id
        if allocation_id in self._attempts:
            found = self._attempts[allocation_id]
            remaining = AttemptPolicies([]) if found is None else found[1]
        else:
            remaining = AttemptPolicies(await repository.listed(session, task_id, allocation_id))
        return remaining.may_match(line.log for line in lines)

    def _policies(
        self, connection: Connection, task_id: str, allocation_id: str | None
    ) -> tuple[Attempt, AttemptPolicies] | None:
        if allocation_id is None:
            allocation_id = repository.newest_allocation(connection, task_id)
        if allocation_id is None:
            return None
        if allocation_id not in self._attempts:
            self._attempts[allocation_id] = repository.policies(connection, task_id, allocation_id)
            if len(self._attempts) > MAX_ATTEMPTS:
                self._attempts.popitem(last=False)
        return self._attempts[allocation_id]


def _attempt_of(line: LogLine) -> tuple[str, str | None]:
    return line.task_id, line.allocation_id
