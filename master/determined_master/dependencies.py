"""What endpoints ask for: the master's parts and sessions whose commit is over before the first byte of the answer."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession

from determined_master.db.session import ReadSession
from determined_master.master import Master


async def master_of(request: Request) -> Master:
    """Asynchronous, as every dependency is: one that is not waits for a thread, and threads may all be taken."""
    master: Master = request.app.state.master
    return master


TheMaster = Annotated[Master, Depends(master_of)]


async def read_session(master: TheMaster) -> AsyncIterator[ReadSession]:
    async with master.database.read() as session:
        yield session


async def write_session(master: TheMaster) -> AsyncIterator[AsyncSession]:
    async with master.database.write() as session:
        yield session


Read = Annotated[ReadSession, Depends(read_session, scope="function")]
Write = Annotated[AsyncSession, Depends(write_session, scope="function")]
