"""Launches commands and services, kills them and changes their priority."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from determined.config.command import CheckedCommand
from determined.config.findings import Finding
from determined.errors import BadRequest, NotFound
from determined.states import TaskKind
from determined_master.agents import repository as agents
from determined_master.allocations.exit_line import CANNOT_START
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.commands import idle
from determined_master.commands.container import command_spec
from determined_master.commands.kinds import LaunchedKind
from determined_master.data_folder.blobs import Blobs
from determined_master.db.models import TaskRow
from determined_master.db.session import Database, ReadSession
from determined_master.events import repository as events
from determined_master.jobs import repository as jobs
from determined_master.jobs.queue_order import check_priority
from determined_master.logs import repository as logs
from determined_master.offloading.offloader import Offloader
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.scheduling.view import Constraints, TaskGroup
from determined_master.settings.pool_settings import unknown
from determined_master.settings.settings import Settings
from determined_master.tasks import environment_check, repository
from determined_master.tasks.service import NewTask, Tasks
from determined_master.users import pool_account
from determined_master.users import repository as users
from determined_master.users.authorization import Authorization

DEFAULT_WORKSPACE = 1
MAX_SHOWN_ERRORS = 20


@dataclass(frozen=True)
class CommandSubmission:
    """A submitted command or service. ``context_hash`` names a stored blob."""

    kind: LaunchedKind
    config: dict[str, Any]
    context_hash: str | None = None
    workspace_id: int | None = None
    template: str | None = None
    context_notes: tuple[str, ...] = ()
    """Sentences about the files of the context, for the log of the task."""


@dataclass(frozen=True)
class Launched:
    """A task that was created, with a sentence for each setting that has no or another effect."""

    task: TaskRow
    warnings: tuple[str, ...]


class Commands:
    """Commands and services, by their table. Each method is one transaction."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        clock: Clock,
        settings: Settings,
        managers: ResourceManagers,
        tasks: Tasks,
        authorization: Authorization,
        offloader: Offloader,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock
        self._settings = settings
        self._managers = managers
        self._tasks = tasks
        self._authorization = authorization
        self._offloader = offloader

    async def launch(self, submitted: CommandSubmission, principal: Principal) -> Launched:
        """Creates the task. Raises BadRequest with the errors of its configuration; stores nothing if there are."""
        if submitted.template:
            raise BadRequest("templates are not supported yet; put the fields into the configuration")
        kind = submitted.kind
        async with self._database.read() as session:
            has_containers = await agents.have_containers(session)
        size = len(str(submitted.config))
        checked = await self._offloader.run_sized(
            size, kind.check, submitted.config, has_containers, self._settings.pool_layers
        )
        config = self._complete(kind, checked)
        pool = self._settings.pools[config["resources"]["resource_pool"]]
        size = 0
        if submitted.context_hash:
            found = self._blobs.size(submitted.context_hash)
            if found is None:
                raise NotFound(f"the master does not have context {submitted.context_hash}; send it again")
            size = found
        digest = submitted.context_hash
        findings = await environment_check.findings(
            config, self._blobs.path(digest) if digest else None, self._offloader
        )
        if findings:
            raise _invalid(kind, findings)
        spec = command_spec(
            config,
            submitted.context_hash,
            size,
            owner=principal.username,
            pool_hook=self._settings.hook_in(pool.pool_name),
            interface=self._settings.interface_in(pool.pool_name),
            port=kind.port,
        )
        warnings = [_text(each) for each in (*checked.warnings, *await self._size(kind, config))]
        config, too_long = self._limited(kind, config)
        warnings += too_long
        async with self._database.write() as session:
            await pool_account.check(session, principal, pool)
            workspace = await users.get_workspace(session, submitted.workspace_id or DEFAULT_WORKSPACE)
            new = NewTask(
                kind=kind.kind,
                user_id=principal.user_id,
                owner=principal.username,
                description=config["description"],
                spec=spec,
                config=config,
                slots=config["resources"]["slots"],
                pool=pool.pool_name,
                priority=config["resources"]["priority"],
                weight=config["resources"].get("weight") or 1.0,
                workspace_id=workspace.id,
                idle_timeout=config["idle_timeout"] if kind.idle else None,
            )
            row = await self._tasks.create(session, new)
            for text in (*warnings, *submitted.context_notes):
                await logs.say(session, row.id, f"{row.id}.1", text, self._clock.now(), "WARNING")
        return Launched(row, tuple(warnings))

    async def kill(self, kind: LaunchedKind, task_id: str, principal: Principal) -> None:
        """Kills a task of a kind; no-op if it has ended."""
        async with self._database.write() as session:
            row = await self._to_change(session, kind, task_id, principal)
            await self._tasks.kill(session, row, principal.username)

    async def kill_task(self, task_id: str, principal: Principal) -> None:
        """Kills a task of any kind but a trial; no-op if it has ended. Raises BadRequest for a trial."""
        async with self._database.write() as session:
            row = await repository.get(session, task_id)
            await self._authorization.check_change(session, principal, row.user_id, f"task {row.id}")
            if row.kind is TaskKind.TRIAL:
                raise BadRequest(f"task {task_id} is a trial; kill the trial instead")
            await self._tasks.kill(session, row, principal.username)

    async def set_priority(self, kind: LaunchedKind, task_id: str, priority: int, principal: Principal) -> None:
        """Changes the place of a task of a kind in the queue. Raises BadRequest for a priority out of range."""
        jobs.check_range(priority)
        async with self._database.write() as session:
            row = await self._to_change(session, kind, task_id, principal)
            job = await jobs.get(session, row.job_id)
            default = self._settings.priority_in(job.pool)
            may_improve = self._authorization.may_improve(principal)
            check_priority(new=priority, old=job.priority, default=default, is_admin=may_improve)
            await jobs.change(session, row.job_id, priority=priority)
            await events.record(
                session,
                self._clock,
                actor=principal.username,
                kind="changed",
                target_type="task",
                target_id=row.id,
                payload={"fields": ["priority"]},
            )

    async def _to_change(self, session: ReadSession, kind: LaunchedKind, task_id: str, principal: Principal) -> TaskRow:
        row = await get(session, kind, task_id)
        await self._authorization.check_change(session, principal, row.user_id, f"{kind.noun} {row.id}")
        return row

    def _complete(self, kind: LaunchedKind, checked: CheckedCommand) -> dict[str, Any]:
        """Returns the configuration with the fields that only the cluster knows. Raises BadRequest."""
        if checked.config is None:
            raise _invalid(kind, checked.errors)
        config = checked.config
        resources = config["resources"]
        pool = self._settings.pool_for(resources["resource_pool"], resources["slots"])
        if pool not in self._settings.pools:
            raise BadRequest("; ".join(unknown(pool, self._settings.pools)))
        priority = resources["priority"]
        filled = {"resource_pool": pool, "priority": self._settings.priority_in(pool) if priority is None else priority}
        return config | {"resources": resources | filled}

    def _limited(self, kind: LaunchedKind, config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Returns the configuration of a service with the timeout that its pool allows, and a warning if it asked for
        a longer one."""
        if kind.idle is None:
            return config, []
        asked, limit = config["idle_timeout"], self._settings.max_idle_in(config["resources"]["resource_pool"])
        warning = idle.limit_warning(asked, limit, kind.noun)
        return {**config, "idle_timeout": idle.allowed(asked, limit)}, [warning] if warning else []

    async def _size(self, kind: LaunchedKind, config: Mapping[str, Any]) -> list[Finding]:
        """Returns a warning for a task that its pool can never hold; raises BadRequest where it is refused."""
        resources = config["resources"]
        groups = (TaskGroup(kind.noun, slots=resources["slots"], constraints=Constraints(single_agent=True)),)
        async with self._database.read() as session:
            reason = await self._managers.validate(session, resources["resource_pool"], groups)
        if reason is None:
            return []
        if self._settings.launch_error:
            raise BadRequest(f"{CANNOT_START}: the {kind.noun} {reason}")
        text = f"{CANNOT_START}: the {kind.noun} {reason}"
        return [Finding("W505", ("resources", "slots"), text, severity="warning")]


async def get(session: ReadSession, kind: LaunchedKind, task_id: str) -> TaskRow:
    """Returns a task of a kind. Raises NotFound for any other id."""
    row = await repository.find(session, task_id)
    if row is None or row.kind is not kind.kind:
        raise NotFound(f"{kind.noun} '{task_id}' not found")
    return row


def _invalid(kind: LaunchedKind, errors: Sequence[Finding]) -> BadRequest:
    return BadRequest(f"the configuration of the {kind.noun} is invalid: {_texts(errors)}")


def _text(finding: Finding) -> str:
    return f"{finding.message}; {finding.hint}" if finding.hint else finding.message


def _texts(errors: Sequence[Finding]) -> str:
    shown = [f"{each.message} ({each.hint})" if each.hint else each.message for each in errors[:MAX_SHOWN_ERRORS]]
    more = len(errors) - MAX_SHOWN_ERRORS
    return "; ".join([*shown, f"and {more} more"] if more > 0 else shown)
