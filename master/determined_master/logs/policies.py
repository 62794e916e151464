"""Log policies of one attempt: which of their patterns a line matches for the first time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from determined.config.patterns import PatternError, compiled

Action = Literal["cancel_retries", "exclude_node"]
MAX_CHARACTERS = 32_768
"""Characters of a line that are compared; agents shorten longer lines."""
SECONDS_A_BATCH = 0.5
"""CPU time for the lines of one batch, which others wait for: an attempt that needs more is compared no further."""
_ECHO = ('"log_policies"', "'log_policies'", "log_policies:")
"""A line with one of these shows the configuration, and so the patterns themselves."""


@dataclass(frozen=True)
class Policy:
    """One log policy; ``position`` is its place in the configuration."""

    position: int
    name: str
    pattern: str
    action: Action | None

    @property
    def title(self) -> str:
        """Returns how sentences name it.

        >>> Policy(0, "CUDA OOM", "out of memory", None).title, Policy(1, "", "bad disk", "exclude_node").title
        ('log policy "CUDA OOM"', 'log policy /bad disk/')
        """
        return f'log policy "{self.name}"' if self.name else f"log policy /{self.pattern}/"

    def sequel(self, agent_id: str | None) -> str:
        """Returns what follows from a match on a line of that agent; nothing for a policy that only marks the trial.

        >>> Policy(0, "", "bad disk", "exclude_node").sequel("node-1")
        'later attempts of the trial do not run on agent node-1'
        """
        if self.action == "cancel_retries":
            return "the trial is not restarted if it fails"
        if self.action == "exclude_node" and agent_id is None:
            return "no agent is excluded, because the line names none"
        return f"later attempts of the trial do not run on agent {agent_id}" if self.action else ""


def policies_of(values: object) -> list[Policy]:
    """Returns the policies of a stored configuration. One without a pattern turns off a default, and is left out."""
    listed = values if isinstance(values, list) else []
    return [_policy(place, each) for place, each in enumerate(listed) if isinstance(each, dict) and each.get("pattern")]


def _policy(position: int, values: Mapping[str, Any]) -> Policy:
    return Policy(position, values.get("name") or "", values["pattern"], values.get("action"))


@dataclass
class AttemptPolicies:
    """The policies of one attempt that no line has matched yet."""

    open: list[Policy]
    is_off: bool = False
    """True after a batch took too long."""
    _deadline: float = field(default=0.0, repr=False)

    def matches(self, lines: Iterable[str]) -> Iterator[tuple[int, Policy]]:
        """Yields index and policy where a line is the first that matches a policy. Sets ``is_off`` if time runs out."""
        self._deadline = time.thread_time() + SECONDS_A_BATCH
        for index, line in enumerate(lines):
            if not self.open or self.is_off:
                return
            text = line[:MAX_CHARACTERS]
            if not any(find(text) for find in _prefilter(tuple(each.pattern for each in self.open))):
                self._check_time()
                continue
            if any(word in text for word in _ECHO):
                continue
            for policy in [each for each in self.open if any(find(text) for find in _prefilter((each.pattern,)))]:
                self.open.remove(policy)
                yield index, policy
            self._check_time()

    def take(self, found: Iterable[tuple[int, Policy]]) -> Iterator[tuple[int, Policy]]:
        """Yields the matches whose policy is still open, and closes it. ``found``: what another thread has found with
        a copy of these policies."""
        for index, policy in found:
            if policy in self.open:
                self.open.remove(policy)
                yield index, policy

    def may_match(self, lines: Iterable[str]) -> bool:
        """Returns True if a line is found by a pattern that no line has matched yet. Changes nothing."""
        if not self.open or self.is_off:
            return False
        finders = _prefilter(tuple(each.pattern for each in self.open))
        return any(find(line[:MAX_CHARACTERS]) for line in lines for find in finders)

    def _check_time(self) -> None:
        self.is_off = time.thread_time() > self._deadline


@lru_cache(maxsize=256)
def _prefilter(patterns: Sequence[str]) -> list[Any]:
    """Returns search functions; a line that none of them finds matches no pattern. Mostly one, for all patterns: a
    call costs more than a comparison. All attempts share them, because a compiled expression takes much memory."""
    try:
        return [compiled("|".join(f"(?:{each})" for each in patterns), captures=False).search]
    except PatternError:  # together they are too large, or an earlier version accepted one of them
        return [search for each in patterns for search in _alone(each)]


def _alone(pattern: str) -> list[Any]:
    try:
        return [compiled(pattern).search]
    except PatternError:
        return []
