"""Joins a program with a client: passes records of both until the program has ended, or is to end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from determined.streams.records import Kind, Record, StreamBroken
from determined_agent.streams.program import Program

DRAIN_SECONDS = 2.0
"""Time for the last output after the end of a program: what it left may hold its output open."""
MAX_NUMBER = 10_000
"""Of cells of a terminal, and of signals."""


async def join(
    program: Program,
    send: Callable[[Record], Awaitable[None]],
    receive: Callable[[], Awaitable[Record]],
    ending: asyncio.Event,
) -> dict[str, Any] | None:
    """Returns the status of the program, or None if it is to end. Does not close it.

    Args:
        program: a program or a connection.
        send: takes a record of the program, at last one of kind END; waits while the client has no room.
        receive: returns the next record of the client.
        ending: set if the program is to end.

    Raises StreamBroken if the client sends what no client sends.
    """
    output = _Output(program, send)
    sending = asyncio.create_task(output.send_all())
    receiving = asyncio.create_task(_receive_all(program, receive))
    over = asyncio.create_task(program.wait())
    stopped = asyncio.create_task(ending.wait())
    tasks = (sending, receiving, over, stopped)
    try:
        await asyncio.wait({receiving, over, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not over.done():
            if receiving.done():
                receiving.result()
            return None
        # Sends what is left, and gives up once what the program left behind has written nothing for a while.
        while not sending.done() and not stopped.done():
            before = output.sent
            await asyncio.wait({sending, stopped}, timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if output.sent == before and not output.is_sending:
                break
        return over.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Output:
    """Sends the output of a program, and shows whether that waits for the program or for the client."""

    def __init__(self, program: Program, send: Callable[[Record], Awaitable[None]]) -> None:
        self._program, self._send = program, send
        self.sent = 0
        self.is_sending = False

    async def send_all(self) -> None:
        while (record := await self._program.read()) is not None:
            self.is_sending = True
            await self._send(record)
            self.is_sending = False
            self.sent += 1
        await self._send(Record(Kind.END))


async def _receive_all(program: Program, receive: Callable[[], Awaitable[Record]]) -> None:
    while True:
        await _pass_on(await receive(), program)


async def _pass_on(record: Record, program: Program) -> None:
    """Applies one record of a client. Raises StreamBroken."""
    match record.kind:
        case Kind.INPUT:
            await program.write(record.content)
        case Kind.END:
            await program.end_input()
        case Kind.RESIZE:
            rows, columns = _numbers(record, "rows", "columns")
            await program.resize(rows, columns)
        case Kind.SIGNAL:
            (number,) = _numbers(record, "signal")
            await program.signal(number)
        case _:
            raise StreamBroken(f"a client sends no record {record.kind.name}")


def _numbers(record: Record, *names: str) -> list[int]:
    numbers = [record.value.get(name) for name in names]
    if not all(isinstance(number, int) and 0 < number <= MAX_NUMBER for number in numbers):
        raise StreamBroken(f"a record {record.kind.name} needs {' and '.join(names)} between 1 and {MAX_NUMBER}")
    return [int(number) for number in numbers if number is not None]
