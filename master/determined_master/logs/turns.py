"""Turns of those who read logs."""

import asyncio


class Turns:
    """Lets readers of logs read one page at a time, in their order, and others in between.

    Hundreds of readers that are all ready at once would hold the event loop for as long as all of their pages take.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> None:
        await self._turn.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._turn.release()
        await asyncio.sleep(0)
