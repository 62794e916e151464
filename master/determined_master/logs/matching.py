"""Regular expressions over lines, with a bound on their time: an expression can take for ever on one line."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from determined.errors import BadRequest

SECONDS = 2.0
_PROGRAM = Path(__file__).with_name("matcher.py")
CONCURRENCY = 4


class OutOfTime(Exception):
    """The expression takes too long on these lines."""


class Matcher:
    """A running program for one expression; all questions to it share one time."""

    def __init__(self, process: Process, deadline: float) -> None:
        self._process = process
        self._deadline = deadline

    async def prepare(self, expression: str) -> None:
        try:
            await self._ask(expression)
        except OutOfTime:
            raise BadRequest("the regular expression takes too long to prepare; make it simpler") from None

    async def matching(self, texts: Sequence[str]) -> set[int]:
        """Places of those in which it is found. Raises OutOfTime."""
        return set(await self._ask(texts))

    async def _ask(self, question: object) -> list[int]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            async with asyncio.timeout_at(self._deadline):
                stdin.write(json.dumps(question).encode() + b"\n")
                await stdin.drain()
                answer = await stdout.readline()
        except (TimeoutError, ConnectionError):
            raise OutOfTime from None
        if not answer:
            raise OutOfTime
        found = json.loads(answer)
        if isinstance(found, str):
            raise BadRequest(f"the search text is no regular expression: {found}")
        return found or []


class Matchers:
    """Of one master: so many programs at a time and no more."""

    def __init__(self) -> None:
        self._at_once = asyncio.Semaphore(CONCURRENCY)

    @asynccontextmanager
    async def of(self, expression: str, seconds: float = SECONDS) -> AsyncIterator[Matcher]:
        """Raises BadRequest where it is none."""
        async with self._at_once:
            argv = (sys.executable, "-I", "-S", str(_PROGRAM))
            process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE)
            try:
                made = Matcher(process, asyncio.get_running_loop().time() + seconds)
                await made.prepare(expression)
                yield made
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                # Reads what is left as well, so that nothing of its pipes stays open.
                await process.communicate()
