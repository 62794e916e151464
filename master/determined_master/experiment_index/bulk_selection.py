"""Applies an action to selected experiments; each has its own result."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from determined.errors import ApiError, BadRequest
from determined_master.db.models.base import MAX_INT64
from determined_master.db.session import Database, ReadSession, WriteSession
from determined_master.errors import SelectionChanged, unexpected
from determined_master.experiment_index import repository
from determined_master.users import repository as users

logger = logging.getLogger(__name__)

MAX_EXPERIMENTS = 10_000
MAX_LABEL_LENGTH = 255
LOT_SECONDS = 0.05
"""Time after which a transaction takes no further experiment: others wait for the write lock meanwhile."""

Verb = Callable[[int, WriteSession | None], Awaitable[Any]]
"""An action on one experiment in a given session, or with None in a transaction of its own."""
Listed = Callable[[ReadSession], Awaitable[Sequence[int]]]


class Result(NamedTuple):
    id: int
    error: str
    """Empty on success."""


class IdSelection:
    """Experiments that are selected by id, of a project or (0) of any."""

    def __init__(
        self,
        ids: Sequence[int],
        *,
        project_id: int = 0,
        expected_count: int | None = None,
        listed: Listed | None = None,
    ) -> None:
        """``listed`` returns the experiments that a filter selects, also in the transactions that change them."""
        if listed is not None and ids:
            raise BadRequest("experimentIds and filters exclude each other")
        if len(ids) > MAX_EXPERIMENTS:
            raise BadRequest(f"{len(ids)} experiments are too many for one request (at most {MAX_EXPERIMENTS})")
        if not 0 <= project_id <= MAX_INT64:
            raise BadRequest(f"there is no project {project_id}")
        self.ids = list(dict.fromkeys(ids))
        self._project_id = project_id
        self._expected_count = expected_count
        self._listed = listed

    async def each(self, database: Database, verb: Verb) -> list[Result]:
        """Applies the action. Raises SelectionChanged, without any change, if the number of experiments is not the
        expected one. An error is the result of its experiment; it is raised only if the master itself failed for all
        of them."""
        if self._listed is not None:
            return await self._each_listed(database, verb, self._listed)
        there = await self._there(database)
        if self._expected_count is not None and self._expected_count != len(there):
            raise SelectionChanged(
                f"expected {self._expected_count} experiments, but found {len(there)}; "
                "nothing was changed, reload the list"
            )
        results: list[Result] = []
        faults: list[Exception] = []
        for experiment_id in self.ids:
            if experiment_id not in there:
                results.append(Result(experiment_id, f"experiment '{experiment_id}' not found{self._where}"))
                continue
            try:
                await verb(experiment_id, None)
                results.append(Result(experiment_id, ""))
            except ApiError as error:
                results.append(Result(experiment_id, error.message))
            except Exception as error:
                faults.append(error)
                results.append(Result(experiment_id, unexpected(error).message))
        if faults and len(faults) == len(there):
            raise faults[0]
        return results

    async def _each_listed(self, database: Database, verb: Verb, listed: Listed) -> list[Result]:
        """Selects and changes in lots, one transaction each; the failed change of an experiment is rolled back alone.

        Those that the filter no longer selects when their lot begins are left out.
        """
        results: list[Result] = []
        faults: list[Exception] = []
        left = await self._found(database, listed)
        while left:
            async with database.write() as session:
                still = set(await listed(session))
                left = [experiment_id for experiment_id in left if experiment_id in still]
                end = time.monotonic() + LOT_SECONDS
                while left and time.monotonic() < end:
                    results.append(await _applied(session, verb, left.pop(0), faults))
        if faults and len(faults) == len(results):
            raise faults[0]
        return results

    async def _found(self, database: Database, listed: Listed) -> list[int]:
        async with database.read() as session:
            if self._project_id:
                await users.get_project(session, self._project_id)
            listed_rows = await listed(session)
            if len(listed_rows) > MAX_EXPERIMENTS:
                raise BadRequest(f"the filter matches {len(listed_rows)} experiments, more than {MAX_EXPERIMENTS}")
            if self._expected_count is not None and self._expected_count != len(listed_rows):
                raise SelectionChanged(
                    f"expected {self._expected_count} experiments, but the filter matches {len(listed_rows)}; "
                    "nothing was changed, reload the list"
                )
        return list(listed_rows)

    async def _there(self, database: Database) -> set[int]:
        async with database.read() as session:
            if self._project_id:
                await users.get_project(session, self._project_id)
            possible = [i for i in self.ids if 0 < i <= MAX_INT64]
            return set(await repository.existing(session, possible, self._project_id))

    @property
    def _where(self) -> str:
        return f" in project {self._project_id}" if self._project_id else ""


async def _applied(session: WriteSession, verb: Verb, experiment_id: int, faults: list[Exception]) -> Result:
    try:
        async with session.begin_nested():
            await verb(experiment_id, session)
    except ApiError as error:
        return Result(experiment_id, error.message)
    except Exception as error:
        faults.append(error)
        return Result(experiment_id, unexpected(error).message)
    return Result(experiment_id, "")


def project_of(path: int, body: int) -> int:
    """Returns the project of path and body; 0 or -1 means any. The body may omit it."""
    path, body = max(0, path), max(0, body)
    if body and body != path:
        raise BadRequest(f"the path names project {path}, but the body names project {body}")
    return path


def labels(words: Sequence[str]) -> list[str]:
    found = [word.strip() for word in words]
    for word in found:
        if not 0 < len(word) <= MAX_LABEL_LENGTH:
            raise BadRequest(f"a label must have 1 to {MAX_LABEL_LENGTH} characters, not {word[:60]!r}")
    return found
