"""Runs a step on all workers: it succeeds on all of them, or it fails on all of them and names the failed ranks."""

from collections.abc import Callable
from typing import Any, TypeVar

from determined.core._distributed import DistributedContext
from determined.errors import StorageError

T = TypeVar("T")
Exchange = Callable[[Any], list[Any]]


def run_on_all_ranks(
    peers: DistributedContext, what: str, work: Callable[[], T], exchange: Exchange | None = None
) -> list[T]:
    """Calls ``work`` on every worker and returns the results of all workers, in rank order.

    If ``work`` raises on some workers, those workers raise their own error and the others raise an error that names
    the failed ranks: StorageError if every failure is one, else RuntimeError. ``exchange`` is an allgather, by default
    over all workers.
    """
    failure: BaseException | None = None
    result: T | None = None
    try:
        result = work()
    except BaseException as error:
        failure = error
    mine = (peers.rank, failure is None, result if failure is None else _told(failure))
    answers = (exchange or peers.allgather)(mine)
    if failure is not None:
        raise failure
    failed = [(rank, told) for rank, well, told in answers if not well]
    if failed:
        raise _error(what, failed)
    return [value for _, _, value in answers]


def _told(failure: BaseException) -> tuple[bool, str]:
    text = str(failure)
    if isinstance(failure, StorageError):
        return True, text
    return False, f"{type(failure).__name__}: {text}" if text else type(failure).__name__


def _error(what: str, failed: list[tuple[int, tuple[bool, str]]]) -> Exception:
    reasons: dict[str, list[int]] = {}
    for rank, (_, text) in failed:
        reasons.setdefault(text, []).append(rank)
    told = "; ".join(f"{ranks_text(ranks)} failed: {text}" for text, ranks in reasons.items())
    kind = StorageError if all(storage for _, (storage, _) in failed) else RuntimeError
    return kind(f"{what}: {told}")


def ranks_text(ranks: list[int]) -> str:
    """Returns the ranks in words.

    >>> ranks_text([0, 2])
    'ranks 0 and 2'
    """
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(str(rank) for rank in ranks[:-1])} and {ranks[-1]}"
