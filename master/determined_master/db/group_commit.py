"""Group commit: one transaction for all waiting requests, each answered after the commit."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from determined.errors import ApiError
from determined_master.db.postgresql import is_repeatable
from determined_master.db.session import Database, ReadSession
from determined_master.errors import StorageUnavailable

logger = logging.getLogger(__name__)

SIBLINGS = 4
PATIENCE_SECONDS = 0.0002
REPEAT_SECONDS = 0.05
MAX_REPEATS = 100
MAX_GROUP_BYTES = 1 << 20
"""A group takes no further request after so many bytes: changes of states wait for it."""


Operation = TypeVar("Operation", contravariant=True)
Answer = TypeVar("Answer", covariant=True)
Sent = TypeVar("Sent")
Given = TypeVar("Given")
T = TypeVar("T")


class Store(Protocol[Operation, Answer]):
    """Stores operations of one kind in bulk.

    ``apply`` runs in the writer's thread, inside a transaction that it must not end. It answers one result or one
    exception for each operation, in order; an exception that it raises instead fails the whole group, which is then
    replayed one by one, so that a bad row fails only its sender. ``rolled_back`` is called where a transaction that it
    took part in was undone: what it remembers of it has to go.
    """

    def apply(self, connection: Connection, operations: Sequence[Operation]) -> Sequence[Answer | ApiError]: ...

    def rolled_back(self) -> None: ...

    def topics(self, operations: Sequence[Operation]) -> set[str]: ...

    def is_quick(self, operations: Sequence[Operation]) -> bool:
        """Returns True if ``apply`` takes a few milliseconds at most."""
        ...


@runtime_checkable
class PreparingStore(Protocol[Operation]):
    """A store that does a part of its work before the transaction, while others write, unless it is quick. Where that
    fails, ``apply`` does it."""

    def is_quick(self, operations: Sequence[Operation]) -> bool: ...

    async def prepare(self, session: ReadSession, operations: Sequence[Operation]) -> Callable[[], None]:
        """Returns work for the writer's thread."""
        ...


@dataclass(slots=True)
class _Waiting:
    store: Store[Any, Any]
    operation: object
    size: int
    answer: "asyncio.Future[Any]"


class WriterConnection:
    """The connection of the writer, which stays open between groups: to take one from a pool costs as much as a small
    group. A failed transaction closes it, so that the next one gets a new connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: Connection | None = None

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        if self._open is None:
            self._open = self._engine.connect()
        try:
            with self._open.begin():
                yield self._open
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()


class GroupWriter:
    """The writer of one master. The queue is bounded: when it is full, requests wait and none is refused."""

    def __init__(self, database: Database, *, most: int = 512) -> None:
        self._database = database
        self._most = most
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(maxsize=4 * most)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="group-writer")
        self._connection = WriterConnection(database.group_engine)
        self.groups = 0
        """Number of committed groups, by which background work recognizes an idle writer."""

    @property
    def waiting(self) -> int:
        """Returns the number of operations that no group has taken yet."""
        return self._queue.qsize()

    async def write(self, store: Store[Sent, Given], operation: Sent, size: int = 0) -> Given:
        """Returns the store's answer after the commit. Cancelling the caller cancels its wait, not its row.

        ``size``: bytes of the request, of which a group takes a limited number.
        """
        answer: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        await self._queue.put(_Waiting(store, operation, size, answer))
        return await answer

    async def run(self) -> None:
        """Writes groups until cancelled; waiting operations are written first."""
        last = 0
        try:
            while True:
                group = await self._take(last)
                last = len(group)
                self.groups += 1
                await self._serve(group)
        finally:
            while not self._queue.empty():
                await self._serve(await self._take(0))
            await self._call(self._connection.close)
            self._thread.shutdown(wait=False)

    async def _take(self, last: int) -> list[_Waiting]:
        """Takes all waiting operations. After a large group its senders are about to send again: a short delay joins
        what would be two groups, and a group costs more than its members. A single sender never waits."""
        group = [await self._queue.get()]
        if last >= SIBLINGS:
            await asyncio.sleep(PATIENCE_SECONDS)
        size = group[0].size
        while len(group) < self._most and size < MAX_GROUP_BYTES and not self._queue.empty():
            group.append(self._queue.get_nowait())
            size += group[-1].size
        return group

    async def _serve(self, group: list[_Waiting]) -> None:
        """Commits a group and survives every error: all later reports depend on the writer."""
        try:
            await self._commit(group)
        except Exception as error:
            logger.exception("cannot write a group of %d reports", len(group))
            for waiting in group:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)

    async def _prepare(self, group: list[_Waiting]) -> None:
        for store, operations in _by_store(group):
            if not store.is_quick(operations) and isinstance(store, PreparingStore):
                try:
                    async with self._database.read() as session:
                        work = await store.prepare(session, operations)
                    await self._call(work)
                except Exception as error:
                    logger.info("a group of %d reports could not be prepared: %s", len(operations), error)

    async def _commit(self, group: list[_Waiting]) -> None:
        await self._prepare(group)
        async with self._database.group_lock:
            try:
                results = await self._call(partial(self._transaction, group))
            except StorageUnavailable as error:
                results = [error] * len(group)  # the storage failed, not a report
            except Exception as error:
                is_alone = len(group) == 1
                results = [error] if is_alone else [await self._call(partial(self._alone, one)) for one in group]
        topics: set[str] = set()
        for store in {id(w.store): w.store for w in group}.values():
            topics |= store.topics(
                [w.operation for w, r in zip(group, results, strict=True) if w.store is store and not _failed(r)]
            )
        for waiting, result in zip(group, results, strict=True):
            if waiting.answer.done():
                continue
            if _failed(result):
                waiting.answer.set_exception(result)
            else:
                waiting.answer.set_result(result)
        self._database.notifications.publish(topics)

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _alone(self, one: _Waiting) -> object:
        try:
            return self._transaction([one])[0]
        except Exception as error:
            return error

    def _transaction(self, group: list[_Waiting]) -> list[object]:
        """Commits a group; again where a change of states held rows that it needs, or crossed it."""
        for _ in range(MAX_REPEATS):
            try:
                return self._once(group)
            except DBAPIError as error:
                if not is_repeatable(error):
                    raise
            time.sleep(REPEAT_SECONDS)  # in the writer's thread
        return self._once(group)

    def _once(self, group: list[_Waiting]) -> list[object]:
        try:
            with self._connection.begin() as connection:
                return self._applied(connection, group)
        except BaseException:
            _roll_back(group)
            raise

    def _applied(self, connection: Connection, group: list[_Waiting]) -> list[object]:
        results: list[object] = [None] * len(group)
        for store, places in _places(group):
            answers = store.apply(connection, [group[place].operation for place in places])
            for place, answer in zip(places, answers, strict=True):
                results[place] = answer
        return results


def _places(group: list[_Waiting]) -> Iterable[tuple[Store[Any, Any], list[int]]]:
    """Returns the places of each store's operations in the group."""
    found: dict[int, tuple[Store[Any, Any], list[int]]] = {}
    for place, waiting in enumerate(group):
        found.setdefault(id(waiting.store), (waiting.store, []))[1].append(place)
    return found.values()


def _by_store(group: list[_Waiting]) -> Iterator[tuple[Store[Any, Any], list[Any]]]:
    return ((store, [group[place].operation for place in places]) for store, places in _places(group))


def _roll_back(group: list[_Waiting]) -> None:
    for store, _ in _places(group):
        store.rolled_back()


def _failed(result: object) -> TypeGuard[Exception]:
    return isinstance(result, Exception)
