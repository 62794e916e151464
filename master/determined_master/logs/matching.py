"""Regular expressions over lines. RE2 takes linear time, so threads of the master can search with any expression."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from anyio import CapacityLimiter, to_thread

from determined.config import patterns
from determined.errors import BadRequest

SECONDS = 2.0
CONCURRENCY = 2
SLICE_LINES = 500
"""Lines per call of a thread: searches take turns."""
MAX_EXPRESSION_MEMORY_BYTES = 8 << 20


class OutOfTime(Exception):
    """The lines take longer than one search may."""


class Matcher:
    """One expression; all its searches share one time limit."""

    def __init__(self, expression: str, limiter: CapacityLimiter, deadline: float) -> None:
        self._find = _compiled(expression)
        self._limiter = limiter
        self._deadline = deadline

    async def matching(self, texts: Sequence[str]) -> set[int]:
        """Returns the indices of the matching lines. Raises OutOfTime."""
        places: set[int] = set()
        loop = asyncio.get_running_loop()
        for start in range(0, len(texts), SLICE_LINES):
            if loop.time() > self._deadline:
                raise OutOfTime
            part = texts[start : start + SLICE_LINES]
            found = await to_thread.run_sync(self._search, part, limiter=self._limiter)
            places.update(start + place for place in found)
        return places

    def _search(self, texts: Sequence[str]) -> list[int]:
        return [place for place, text in enumerate(texts) if self._find(text)]


class Matchers:
    """Thread pool of one master for searches: it is small, so searches delay nothing else."""

    def __init__(self) -> None:
        self._limiter = CapacityLimiter(CONCURRENCY)

    @asynccontextmanager
    async def of(self, expression: str, seconds: float = SECONDS) -> AsyncIterator[Matcher]:
        """Compiles an expression. Raises BadRequest if RE2 rejects it."""
        yield Matcher(expression, self._limiter, asyncio.get_running_loop().time() + seconds)


def check_expression(expression: str) -> None:
    """Raises BadRequest if RE2 rejects the expression. Empty means none."""
    if expression:
        _compiled(expression)


def _compiled(expression: str) -> Callable[[str], object]:
    """Returns a search function, which returns None without a match."""
    try:
        search: Callable[[str], object] = patterns.compiled(expression, max_memory=MAX_EXPRESSION_MEMORY_BYTES).search
    except patterns.PatternError as error:
        raise BadRequest(
            f"the search text is not a supported regular expression: {error}. {patterns.NOT_SUPPORTED}"
        ) from None
    return search
