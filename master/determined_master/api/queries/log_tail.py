"""Reads the log of a task in pages and follows it until the task has ended and all output has arrived."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from determined.errors import BadRequest
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.db.models import LogRow
from determined_master.db.session import Database, ReadSession
from determined_master.logs import repository
from determined_master.logs.matching import Matchers, OutOfTime
from determined_master.logs.repository import Selection
from determined_master.logs.turns import Turns
from determined_master.tasks import repository as tasks
from determined_master.trials import repository as trial_rows

T = TypeVar("T")
PAGE = 250
PAGE_MATCHED = 5000
"""Lines per search call: a call has the cost of some thousand lines."""
MATCHED_CHARACTERS = 4 << 20
GRACE_SECONDS = 5.0


async def read(
    database: Database,
    task_id: str,
    selection: Selection,
    matchers: Matchers,
    turns: Turns,
    make: Callable[[Sequence[LogRow]], T],
    *,
    expression: str = "",
    limit: int = 0,
    newest_first: bool = False,
    follow: bool = False,
) -> AsyncIterator[T]:
    """Yields what ``make`` makes of each page of lines, each from a session of its own. Raises BadRequest if
    ``expression`` is invalid or takes too long on a page of lines."""
    most, characters = (PAGE_MATCHED, MATCHED_CHARACTERS) if expression else (PAGE, repository.MAX_PAGE_CHARACTERS)
    after_id = sent = 0
    is_first = True
    waited_since_end = False
    async with database.notifications.subscribe(notifications.logs(task_id)) as listener:
        while True:
            async with turns:
                async with database.read() as session:
                    ended, drained = await _ended(session, task_id)
                    rows = await repository.page(
                        session,
                        task_id,
                        selection,
                        after_id=after_id,
                        most=most,
                        newest_first=newest_first,
                        max_characters=characters,
                    )
                if rows:
                    after_id = rows[-1].id
                made = None if expression or not rows else make(rows[: limit - sent] if limit else rows)
            kept = rows
            # An invalid expression is reported even if the log is empty.
            if expression and (rows or is_first):
                kept = await _matching(matchers, expression, rows)
                made = make(kept[: limit - sent] if limit else kept) if kept else None
            is_first = False
            sent += len(kept)
            if made is not None:
                yield made
            if limit and sent >= limit:
                return
            if repository.is_full(rows, most, characters):
                continue
            if (
                not follow
                or newest_first
                or database.notifications.closing
                or (ended and (drained or waited_since_end))
            ):
                return
            woken = await listener.wait(GRACE_SECONDS if ended else 30.0)
            waited_since_end = ended and not woken


async def fields(database: Database, task_id: str, *, follow: bool) -> AsyncIterator[dict[str, list[object]]]:
    """Yields the values by which the log can be filtered; with ``follow`` again after new ones, until the task has
    ended and all output has arrived."""
    known: dict[str, set[Any]] = {name: set() for name in repository.FIELDS}
    after_id = 0
    is_first, waited_since_end = True, False
    async with database.notifications.subscribe(notifications.logs(task_id)) as listener:
        while True:
            async with database.read() as session:
                ended, drained = await _ended(session, task_id)
                newest = await repository.newest_id(session, task_id)
                found = await repository.distinct(session, task_id, after_id, newest)
            after_id = newest
            if is_first or any(found[name] - known[name] for name in known):
                known = {name: known[name] | found[name] for name in known}
                yield {name: sorted(values, key=str) for name, values in known.items()}
            is_first = False
            if not follow or database.notifications.closing or (ended and (drained or waited_since_end)):
                return
            woken = await listener.wait(GRACE_SECONDS if ended else 30.0)
            waited_since_end = ended and not woken


async def _matching(matchers: Matchers, expression: str, rows: Sequence[LogRow]) -> Sequence[LogRow]:
    async with matchers.of(expression) as match:
        try:
            places = await match.matching([row.log for row in rows])
        except OutOfTime:
            raise BadRequest("the regular expression takes too long; use a simpler one") from None
    return [row for place, row in enumerate(rows) if place in places]


async def _ended(session: ReadSession, task_id: str) -> tuple[bool, bool]:
    """Returns whether the task has ended, and whether all output of its containers has arrived."""
    task = await tasks.find(session, task_id)
    trial = await trial_rows.find_by_task(session, task_id)
    state = trial.state if trial is not None else task.state if task is not None else None
    if state is None:
        return True, True
    containers = await allocation_rows.containers_of_tasks(session, [task_id])
    return state.is_terminal, all(c.output_done for c in containers)
