"""Dependencies of endpoints: the services, database sessions, and who sends the request."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession

from determined.errors import Forbidden
from determined_master.authentication import Authenticator
from determined_master.db.session import ReadSession
from determined_master.principal import Principal
from determined_master.services import Services


async def services_of(request: Request) -> Services:
    """Asynchronous, as every dependency is: a synchronous one waits for a thread, and threads may all be taken."""
    services: Services = request.app.state.services
    return services


ServicesDep = Annotated[Services, Depends(services_of)]


async def read_session(services: ServicesDep) -> AsyncIterator[ReadSession]:
    async with services.database.read() as session:
        yield session


async def write_session(services: ServicesDep) -> AsyncIterator[AsyncSession]:
    async with services.database.write() as session:
        yield session


Read = Annotated[ReadSession, Depends(read_session, scope="function")]
Write = Annotated[AsyncSession, Depends(write_session, scope="function")]


async def current_principal(request: Request) -> Principal:
    authenticator: Authenticator = request.app.state.services.authenticator
    return await authenticator.principal(request.headers, request.cookies)


async def current_user(principal: Annotated[Principal, Depends(current_principal)]) -> Principal:
    """A person; a task's token is refused where this is asked for."""
    if principal.is_task:
        raise Forbidden("a task's token may read, and write what is its own; this needs a user's login")
    return principal


async def current_admin(user: Annotated[Principal, Depends(current_user)]) -> Principal:
    if not user.admin:
        raise Forbidden("this needs an admin")
    return user


Anyone = Annotated[Principal, Depends(current_principal)]
User = Annotated[Principal, Depends(current_user)]
Admin = Annotated[Principal, Depends(current_admin)]
