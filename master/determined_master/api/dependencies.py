"""Dependencies of endpoints: services, database sessions, and the authenticated principal."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from pydantic import TypeAdapter, ValidationError

from determined.errors import Forbidden, Unauthenticated
from determined.states import TokenScope
from determined_master.agents.registry import Registry
from determined_master.agents.service import Agents
from determined_master.allocations.rendezvous_wait import RendezvousWait
from determined_master.allocations.service import Allocations
from determined_master.api.queries.model_def import ModelDefs
from determined_master.api.schemas.base import RowId
from determined_master.auth.authentication import Authenticator, bearer
from determined_master.auth.principal import Principal
from determined_master.auth.secrets import Secrets
from determined_master.clock import Clock
from determined_master.cluster.identity import Identity
from determined_master.commands.service import Commands
from determined_master.data_folder.blobs import Blobs
from determined_master.data_folder.storage_health import StorageHealth
from determined_master.db.group_commit import GroupWriter
from determined_master.db.session import Database, ReadSession, WriteSession
from determined_master.experiments.commands.continuation import Continuer
from determined_master.experiments.commands.create import Creator
from determined_master.experiments.commands.lifecycle import Lifecycle
from determined_master.experiments.commands.queue_update import QueueUpdates
from determined_master.experiments.task_search import TaskSearch
from determined_master.logging import OwnLog
from determined_master.logs.line_counts import LineCounts
from determined_master.logs.matching import Matchers
from determined_master.logs.turns import Turns
from determined_master.notifications import Notifications
from determined_master.offloading.offloader import Offloader
from determined_master.proxy.task_pages import TaskPages
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.settings.settings import Settings
from determined_master.streams.broker import StreamBroker
from determined_master.trials.access import TrialAccess
from determined_master.trials.service import Trials
from determined_master.users import ownership_repository
from determined_master.users.authorization import Authorization
from determined_master.users.service import Users
from determined_master.wiring.services import Services

T = TypeVar("T")
_ROW_ID: TypeAdapter[int] = TypeAdapter(RowId)
"""Reads the ids of a path as the routes do, which take "+7" and "007" for 7."""


async def _services_of(request: Request) -> Services:
    """Returns the services. Asynchronous like every dependency: a synchronous one needs a thread of a limited pool."""
    services: Services = request.app.state.services
    return services


_Services = Annotated[Services, Depends(_services_of)]


def _one_of(select: Callable[[Services], T]) -> Callable[..., Awaitable[T]]:
    async def service(services: _Services) -> T:
        return select(services)

    return service


def _model_defs(services: Services) -> ModelDefs:
    return ModelDefs(services.blobs, services.unpacker, services.model_defs, services.settings.unpacked_limit)


AgentsDep = Annotated[Agents, Depends(_one_of(lambda services: services.agents))]
AllocationsDep = Annotated[Allocations, Depends(_one_of(lambda services: services.allocations))]
AuthenticatorDep = Annotated[Authenticator, Depends(_one_of(lambda services: services.authenticator))]
AuthorizationDep = Annotated[Authorization, Depends(_one_of(lambda services: services.authorization))]
BlobsDep = Annotated[Blobs, Depends(_one_of(lambda services: services.blobs))]
ClockDep = Annotated[Clock, Depends(_one_of(lambda services: services.clock))]
CommandsDep = Annotated[Commands, Depends(_one_of(lambda services: services.commands))]
ContinuerDep = Annotated[Continuer, Depends(_one_of(lambda services: services.continuer))]
CreatorDep = Annotated[Creator, Depends(_one_of(lambda services: services.creator))]
DatabaseDep = Annotated[Database, Depends(_one_of(lambda services: services.database))]
DrainingDep = Annotated[asyncio.Event, Depends(_one_of(lambda services: services.draining))]
GroupWriterDep = Annotated[GroupWriter, Depends(_one_of(lambda services: services.writer))]
IdentityDep = Annotated[Identity, Depends(_one_of(lambda services: services.identity))]
LifecycleDep = Annotated[Lifecycle, Depends(_one_of(lambda services: services.lifecycle))]
LineCountsDep = Annotated[LineCounts, Depends(_one_of(lambda services: services.log_counts))]
ManagersDep = Annotated[ResourceManagers, Depends(_one_of(lambda services: services.managers))]
LogTurnsDep = Annotated[Turns, Depends(_one_of(lambda services: services.log_turns))]
MatchersDep = Annotated[Matchers, Depends(_one_of(lambda services: services.matchers))]
ModelDefsDep = Annotated[ModelDefs, Depends(_one_of(_model_defs))]
NotificationsDep = Annotated[Notifications, Depends(_one_of(lambda services: services.notifications))]
OffloaderDep = Annotated[Offloader, Depends(_one_of(lambda services: services.offloader))]
OwnLogDep = Annotated[OwnLog, Depends(_one_of(lambda services: services.own_log))]
RendezvousDep = Annotated[RendezvousWait, Depends(_one_of(lambda services: services.rendezvous))]
RegistryDep = Annotated[Registry, Depends(_one_of(lambda services: services.registry))]
QueueUpdatesDep = Annotated[QueueUpdates, Depends(_one_of(lambda services: services.queue_updates))]
SecretsDep = Annotated[Secrets, Depends(_one_of(lambda services: services.secrets))]
SettingsDep = Annotated[Settings, Depends(_one_of(lambda services: services.settings))]
TaskPagesDep = Annotated[TaskPages, Depends(_one_of(lambda services: services.pages))]
StreamsDep = Annotated[StreamBroker, Depends(_one_of(lambda services: services.streams))]
StorageHealthDep = Annotated[StorageHealth, Depends(_one_of(lambda services: services.storage))]
TaskSearchDep = Annotated[TaskSearch, Depends(_one_of(lambda services: services.task_search))]
TrialAccessDep = Annotated[TrialAccess, Depends(_one_of(lambda services: services.access))]
TrialsDep = Annotated[Trials, Depends(_one_of(lambda services: services.trials))]
UnpackerDep = Annotated[Offloader, Depends(_one_of(lambda services: services.unpacker))]
UsersDep = Annotated[Users, Depends(_one_of(lambda services: services.users))]


async def read_session(services: _Services) -> AsyncIterator[ReadSession]:
    async with services.database.read() as session:
        yield session


async def write_session(services: _Services) -> AsyncIterator[WriteSession]:
    async with services.database.write() as session:
        yield session


Read = Annotated[ReadSession, Depends(read_session, scope="function")]
Write = Annotated[WriteSession, Depends(write_session, scope="function")]


async def nobody() -> None:
    """Declares that a route needs no sign-in."""


async def current_principal(request: Request) -> Principal:
    authenticator: Authenticator = request.app.state.services.authenticator
    return await authenticator.principal(request.headers, request.cookies)


async def current_user(principal: Annotated[Principal, Depends(current_principal)]) -> Principal:
    """Returns the signed-in user. Raises Forbidden for a task's token."""
    if principal.is_task:
        raise Forbidden("a task token may write only to its own trial; this requires a user's login")
    return principal


async def current_admin(user: Annotated[Principal, Depends(current_user)]) -> Principal:
    if not user.admin:
        raise Forbidden("this requires an admin")
    return user


async def owner(user: Annotated[Principal, Depends(current_user)]) -> Principal:
    """Returns the user, who must own the experiment or task; the command checks that in its transaction."""
    return user


async def self_or_admin(user: Annotated[Principal, Depends(current_user)]) -> Principal:
    """Returns the user, who must be the changed user or an admin; the command checks that."""
    return user


async def task_or_owner(principal: Annotated[Principal, Depends(current_principal)]) -> Principal:
    """Returns a task or the owner of its trial; ``TrialAccess`` and others check that."""
    return principal


async def task_or_user(principal: Annotated[Principal, Depends(current_principal)]) -> Principal:
    """Returns a user, or a task that reads its own data; the route checks that."""
    return principal


async def reader(request: Request, services: _Services) -> Principal:
    """Returns a user, or a task of the user whose logs, files or checkpoint the path names. Raises Forbidden."""
    principal = await current_principal(request)
    if principal.is_task:
        async with services.database.read() as session:
            owner_id = await _owner_of(session, request.path_params)
        if owner_id is not None and owner_id != principal.user_id:
            raise Forbidden("a task token reads logs, files and checkpoints of its own user only")
    return principal


async def _owner_of(session: ReadSession, names: Mapping[str, object]) -> int | None:
    """Returns the owner of what a path names; None if it does not exist or is no id, which the route says. Ids are
    read as the routes read them."""
    numbered = {
        "experiment_id": ownership_repository.owner_of_experiment,
        "trial_id": ownership_repository.owner_of_trial,
        "line_id": ownership_repository.owner_of_line,
    }
    for name, find in numbered.items():
        if name not in names:
            continue
        try:
            number = _ROW_ID.validate_python(names[name])
        except ValidationError:
            return None  # the route refuses it
        return await find(session, number)
    if "task_id" in names:
        return await ownership_repository.owner_of_task(session, str(names["task_id"]))
    return await ownership_repository.owner_of_checkpoint(session, str(names.get("uuid", "")))


async def task(principal: Annotated[Principal, Depends(current_principal)]) -> Principal:
    """Returns the task that sends a report. Raises Forbidden for a user."""
    if not principal.is_task:
        raise Forbidden("only the trial's own task may report this, with its task token")
    return principal


async def search_task(principal: Annotated[Principal, Depends(task)]) -> Principal:
    """Returns the task that runs a search method; ``TaskSearch`` checks that it is the search's own."""
    if principal.scope is not TokenScope.SEARCH:
        raise Forbidden("only the task that runs the search may do this, with its task token")
    return principal


async def agent(request: Request, services: _Services) -> None:
    if not services.authenticator.is_agent(bearer(request.headers.get("authorization"))):
        raise Unauthenticated("the join token is not valid for this cluster")


async def admin_or_operator(request: Request, services: _Services) -> None:
    """Raises unless an admin or the owner of the data folder sends the request: its supervisor must be able to stop the
    cluster gracefully even after every password was changed."""
    if not services.authenticator.is_operator(bearer(request.headers.get("authorization"))):
        await current_admin(await current_user(await current_principal(request)))


async def user_or_operator(request: Request, services: _Services) -> Principal | None:
    """Returns the user, or None for the owner of the data folder."""
    if services.authenticator.is_operator(bearer(request.headers.get("authorization"))):
        return None
    return await current_user(await current_principal(request))


async def log_reader(user: Annotated[Principal, Depends(current_user)], services: _Services) -> Principal:
    """Returns an admin, or with the setting ``master_logs: users`` any user."""
    if services.settings.master_logs == "admin" and not user.admin:
        raise Forbidden("this requires an admin, or the master's setting `master_logs: users`")
    return user


async def metrics_reader(request: Request, services: _Services) -> None:
    """Raises unless a user sends the request, or the setting ``metrics_access: everybody`` is on."""
    if services.settings.metrics_access == "users":
        await current_user(await current_principal(request))


NoLogin = Depends(nobody)
Reader = Annotated[Principal, Depends(reader)]
Anyone = Annotated[Principal, Depends(current_principal)]
User = Annotated[Principal, Depends(current_user)]
Owner = Annotated[Principal, Depends(owner)]
Self = Annotated[Principal, Depends(self_or_admin)]
TaskOrOwner = Annotated[Principal, Depends(task_or_owner)]
TaskOrUser = Annotated[Principal, Depends(task_or_user)]
Task = Annotated[Principal, Depends(task)]
SearchTask = Annotated[Principal, Depends(search_task)]
Admin = Annotated[Principal, Depends(current_admin)]
UserOrOperator = Annotated[Principal | None, Depends(user_or_operator)]
MetricsReader = Depends(metrics_reader)
LogReader = Annotated[Principal, Depends(log_reader)]
