"""The one function that changes states: a guarded update, and its event in the same transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from sqlalchemy import update
from sqlalchemy.orm import InstrumentedAttribute

from determined.errors import ApiError, Conflict
from determined.states import state_clause, state_phrase
from determined_master.clock import Clock
from determined_master.db.models.base import Base
from determined_master.db.session import WriteSession
from determined_master.db.statements.batches import batched
from determined_master.db.statements.row_changes import change_row
from determined_master.events import repository as events
from determined_master.states.transitions import S, Table, reverse

R = TypeVar("R", bound=Base)
_STATE = "state"
"""Name of the state column in every such table."""
MAX_BATCH = 5000
"""Rows per statement: SQLite takes 32,766 variables."""


@dataclass(frozen=True)
class Event:
    """Event that is recorded with a change of state. The payload of kind ``moved`` gets the two states."""

    actor: str = events.SYSTEM
    kind: str = "moved"
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StateMachine(Generic[R, S]):
    """States of one kind of row.

    ``name`` is the target type of its events, ``key`` its primary key, ``allowed`` its table of transitions (see
    docs/architecture/states.md). ``refusal`` is raised for a transition that the table does not allow.
    """

    name: str
    model: type[R]
    key: InstrumentedAttribute[Any]
    allowed: Table[S]
    refusal: type[ApiError] = Conflict
    describe: Callable[[Any], Mapping[str, Any]] = lambda _row: {}
    """Returns additions to the payload of a ``moved`` event from the changed row; it may read only ``described``."""
    described: Sequence[InstrumentedAttribute[Any]] = ()
    is_recorded: bool = True
    """False for rows whose changes are recorded with another row's."""

    @cached_property
    def _may_precede(self) -> dict[S, frozenset[S]]:
        """For each state, the states that may precede it."""
        return reverse(self.allowed)

    async def move(
        self,
        session: WriteSession,
        clock: Clock,
        row: R,
        to: S,
        event: Event | None = None,
        /,
        **values: object,
    ) -> bool:
        """Sets the state of ``row`` to ``to`` and other columns to ``values``, also in the object.

        Returns False, without an event, if the row is in that state already. Raises ``refusal`` if the table does not
        allow it. Several callers may move the same row: the update is guarded by the states that may precede ``to``.
        """
        event = event or Event()
        key, start = getattr(row, self.key.key), getattr(row, _STATE)
        values = {_STATE: to, **values}
        if not await change_row(session, row, values, states=self._may_precede[to]):
            await session.refresh(row)
            current: S = getattr(row, _STATE)
            if current is to:
                return False
            raise self.refusal(
                f"{self.name} {key} {state_clause(current.value)} and cannot become {state_phrase(to.value)}"
            )
        if not self.is_recorded:
            return True
        states = {"from": start.value, "to": to.value, **self.describe(row)} if event.kind == "moved" else {}
        await events.record(
            session,
            clock,
            actor=event.actor,
            kind=event.kind,
            target_type=self.name,
            target_id=key,
            payload={**states, **event.payload},
        )
        return True

    async def move_many(
        self,
        session: WriteSession,
        clock: Clock,
        keys: Sequence[Any],
        start: S,
        to: S,
        event: Event | None = None,
        /,
        **values: object,
    ) -> int:
        """Moves those of ``keys`` that are in state ``start``, in one statement and one for their events, by batch.

        Returns how many moved; others stay as they are. Objects of ``session`` are not refreshed. Raises ``refusal`` if
        the table does not allow it.
        """
        if start not in self._may_precede[to]:
            raise self.refusal(f"a {self.name} that {state_clause(start.value)} cannot become {state_phrase(to.value)}")
        event = event or Event()
        column = getattr(self.model, _STATE)
        states = {"from": start.value, "to": to.value}
        count = 0
        for batch in batched(keys, MAX_BATCH):
            statement = (
                update(self.model)
                .where(self.key.in_(batch), column == start)
                .values({_STATE: to, **values})
                .returning(self.key, *self.described)
                .execution_options(synchronize_session=False)
            )
            moved = (await session.execute(statement)).all()
            count += len(moved)
            payloads = {
                row[0]: {**states, **self.describe(row), **event.payload} if event.kind == "moved" else event.payload
                for row in moved
            }
            await events.record_many(
                session, clock, actor=event.actor, kind=event.kind, target_type=self.name, payloads=payloads
            )
        return count
