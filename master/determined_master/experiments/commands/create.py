"""Creates experiments: checks the configuration, stores the row with its first trials, and activates it."""

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from determined.config import CheckResult
from determined.config.config_merge import merge
from determined.config.masking import MASK, StillMasked, masked_paths, unmasked_text
from determined.config.search_plan import IN_TASK
from determined.errors import BadRequest, NotFound, PreconditionFailed
from determined.states import ExperimentState
from determined_master import notifications
from determined_master.agents import repository as agents
from determined_master.auth.principal import Principal
from determined_master.checkpoints import repository as checkpoints
from determined_master.clock import Clock
from determined_master.data_folder.blobs import Blobs
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.errors import InvalidConfig
from determined_master.events import repository as events
from determined_master.experiments import code_repository, code_state, repository
from determined_master.experiments.code_state import CodeState, StoredCode
from determined_master.experiments.commands import cluster_check
from determined_master.experiments.commands.config_check import CheckedConfig, check_config, with_findings
from determined_master.experiments.commands.lifecycle import Lifecycle
from determined_master.experiments.commands.recent_checks import RecentChecks
from determined_master.experiments.hp_search import snapshot_of
from determined_master.experiments.search_actions import SearchActions
from determined_master.logs import repository as logs
from determined_master.offloading.offloader import Offloader
from determined_master.offloading.threads import USER_FILES
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.searcher.methods import make
from determined_master.searcher.task_method import NOT_BEGUN
from determined_master.settings.settings import Settings
from determined_master.tasks import environment_check
from determined_master.trials import repository as trial_rows
from determined_master.trials.service import Trials
from determined_master.users import pool_account
from determined_master.users import repository as users


@dataclass(frozen=True)
class Submission:
    """Submitted experiment. ``context_hash`` names a stored blob."""

    config: str
    config_name: str = "config.yaml"
    context_hash: str | None = None
    parent_id: int | None = None
    project_id: int | None = None
    activate: bool = False
    validate_only: bool = False
    template: str | None = None
    unmanaged: bool = False
    context_notes: tuple[str, ...] = ()
    """Sentences about the files of the context, for the log of the first trial."""
    code: CodeState | None = None


class Creator:
    """Creates experiments. Raises InvalidConfig with every problem; stores nothing if there is one."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        clock: Clock,
        settings: Settings,
        managers: ResourceManagers,
        trials: Trials,
        verbs: Lifecycle,
        offloader: Offloader,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock
        self._settings = settings
        self._managers = managers
        self._trials = trials
        self._verbs = verbs
        self._offloader = offloader
        self._recent_checks = RecentChecks()

    def defaults(self) -> list[dict[str, Any]]:
        """Returns the defaults under every submitted configuration; the first wins."""
        settings = self._settings
        values: dict[str, Any] = {"checkpoint_storage": settings.storage_default, "launch": settings.launch}
        if settings.legacy_launcher:
            values["legacy_launcher"] = settings.legacy_launcher
        return [values]

    def defaults_in(self, pool: str) -> dict[str, Any]:
        """Returns what is below the configuration of an experiment in a pool."""
        (below,) = self.defaults()
        layer = self._settings.pool_layers.layers.get(pool, {})
        return merge(layer, below)

    async def check(
        self, text: str, name: str = "config.yaml", defaults: Sequence[Mapping[str, Any]] | None = None
    ) -> CheckedConfig:
        """Checks a configuration, also what it names of this cluster; a large one outside the event loop.

        ``defaults``: what is below it instead of the defaults of this cluster.
        """
        result = await self._check_text(text, name, await self._have_containers(), defaults)
        return await self._with_cluster_findings(result, text)

    async def check_before_creation(self, text: str) -> CheckedConfig:
        """Checks a configuration; if the text is submitted soon, :meth:`submit` takes the result."""
        has_containers = await self._have_containers()
        result = await self._check_text(text, "config.yaml", has_containers)
        complete = await self._with_cluster_findings(result, text)
        self._recent_checks.put(text, result, has_containers=has_containers)
        return complete

    async def _check_submission(self, submission: Submission) -> CheckedConfig:
        text, has_containers = submission.config, await self._have_containers()
        recent = self._recent_checks.pop(text, has_containers=has_containers)
        if recent is None:
            result = await self._check_text(text, submission.config_name, has_containers)
        else:
            result = replace(recent, checked=replace(recent.checked, name=submission.config_name))
        return await self._with_cluster_findings(result, text)

    async def _check_text(
        self, text: str, name: str, has_containers: bool, defaults: Sequence[Mapping[str, Any]] | None = None
    ) -> CheckedConfig:
        below = self.defaults() if defaults is None else defaults
        pools = self._settings.pool_layers if defaults is None else None
        return await self._offloader.run_sized(len(text), check_config, text, name, below, has_containers, pools)

    async def _have_containers(self) -> bool:
        async with self._database.read() as session:
            return await agents.have_containers(session)

    async def _with_cluster_findings(self, result: CheckedConfig, text: str) -> CheckedConfig:
        """Adds what is wrong with the pool, the project and the source that the configuration names."""
        if result.config is None:
            return result
        async with self._database.read() as session:
            findings = await cluster_check.findings(session, result.config, self._settings, self._managers)
        if not findings:
            return result
        return await self._offloader.run_sized(len(text), with_findings, result, text, findings)

    async def submit(self, submission: Submission, principal: Principal) -> ExperimentRow:
        if submission.template:
            raise BadRequest("templates are not supported yet; put the fields into the configuration")
        if submission.unmanaged:
            raise BadRequest("unmanaged experiments are not supported yet")
        submission = await self.unmasked(submission, principal)
        result = await self._check_submission(submission)
        if result.config is None:
            raise InvalidConfig(result.checked)
        config = result.config
        if not config.get("entrypoint"):
            raise BadRequest("the configuration has no entrypoint")
        fill_in(config, self._settings)
        await self._check_account(config, principal)
        await self._check_parent(submission)
        await self.check_environment(submission, result, config)
        if submission.validate_only:
            return self._row(submission, config, principal, None, 0)
        code = await self._code(submission, config)
        async with self._database.write() as session:
            context_hash, size = await self._context(session, submission)
            named = await users.find_project(session, config["workspace"], config["project"])
            project_id = submission.project_id or named or cluster_check.DEFAULT_PROJECT_ID
            project = await users.get_project(session, project_id)
            if project.archived:
                raise PreconditionFailed(f"project {project.name!r} is archived")
            row = self._row(replace(submission, project_id=project_id), config, principal, context_hash, size)
            resources = config["resources"]
            await repository.add(
                session,
                row,
                priority=resources["priority"],
                weight=resources["weight"],
                max_slots=resources["max_slots"],
            )
            if code is not None:
                await code_repository.add(session, row.id, code)
            await self._start_search(session, row)
            notes = _warnings_of_projects(result.checked, without=submission.project_id is not None)
            await self._note(session, row, [*submission.context_notes, *notes])
            await events.record(
                session,
                self._clock,
                actor=principal.username,
                kind="created",
                target_type="experiment",
                target_id=row.id,
                payload={"name": row.name, "forked_from": row.parent_id},
            )
            if submission.activate:
                await self._verbs.activate_row(session, row, principal.username)
            await session.refresh(row)
        return row

    async def unmasked(self, submission: Submission, principal: Principal) -> Submission:
        """Restores masked secrets of a fork from its parent, if the parent's owner or an admin creates it."""
        size = len(submission.config) if MASK in submission.config else 0
        paths = await self._offloader.run_sized(size, masked_paths, submission.config)
        if not paths:
            return submission
        if submission.parent_id is None:
            raise BadRequest(f"{paths[0]} is masked; give its value")
        async with self._database.read() as session:
            parent = await repository.get(session, submission.parent_id)
        if not principal.admin and principal.user_id != parent.user_id:
            raise BadRequest(
                f"{paths[0]} is masked; give a value of your own: only its owner and admins can take over the secrets "
                f"of experiment {parent.id}"
            )
        try:
            size += len(parent.original_config)
            text = await self._offloader.run_sized(
                size, unmasked_text, submission.config, parent.config, parent.original_config
            )
            return replace(submission, config=text)
        except StillMasked as error:
            raise BadRequest(f"{error.path} is masked, and experiment {parent.id} has no value for it") from error

    async def _check_account(self, config: Mapping[str, Any], principal: Principal) -> None:
        """Raises Forbidden for a pool whose account does not pay for this user."""
        pool = self._settings.pools.get(config["resources"]["resource_pool"])
        if pool_account.payer(pool):
            async with self._database.read() as session:
                await pool_account.check(session, principal, pool)

    async def _check_parent(self, submission: Submission) -> None:
        """Raises NotFound for a parent that does not exist. Forking is allowed to every user."""
        if submission.parent_id is not None:
            async with self._database.read() as session:
                await repository.get(session, submission.parent_id)

    async def check_environment(self, submission: Submission, found: CheckedConfig, config: Mapping[str, Any]) -> None:
        """Raises InvalidConfig if the context lacks files from which the environment is built."""
        if config["environment"]["venv"] is None:
            return
        async with self._database.read() as session:
            digest, _size = await self._context(session, submission)
        context = None if digest is None else self._blobs.path(digest)
        findings = await environment_check.findings(config, context, self._offloader)
        if findings:
            raise InvalidConfig(with_findings(found, submission.config, findings).checked)

    async def _context(self, session: ReadSession, submission: Submission) -> tuple[str | None, int]:
        if submission.context_hash:
            size = self._blobs.size(submission.context_hash)
            if size is None:
                raise NotFound(f"the master does not have context {submission.context_hash}; send it again")
            return submission.context_hash, size
        if submission.parent_id:
            parent = await repository.get(session, submission.parent_id)
            return parent.context_hash, parent.context_size
        return None, 0

    async def _code(self, submission: Submission, config: Mapping[str, Any]) -> StoredCode | None:
        """Returns the state of the code without secrets; None if there is none, or the settings keep none."""
        if submission.code is None or not self._settings.store_code:
            return None
        return await USER_FILES.run(code_state.prepare, submission.code, config)

    async def _start_search(self, session: WriteSession, row: ExperimentRow) -> None:
        """Stores the search's first actions and its snapshot, in the transaction that creates the experiment.

        A method that runs in a task is asked for them once the experiment is active (loops/search_tasks.py).
        """
        notify(session, notifications.SEARCH)
        if row.searcher_type in IN_TASK:
            await self._warm_start(session, row)
            return
        search = make(row.config, None)
        warm_start = await self._warm_start(session, row)
        await SearchActions(self._clock, self._trials).apply(session, row, search.initial(), warm_start=warm_start)
        await repository.change(session, row, searcher_snapshot=snapshot_of(search, 0), searcher_cursor=0)

    async def _note(self, session: WriteSession, row: ExperimentRow, notes: Sequence[str]) -> None:
        """Writes the notes into the log of the first trial: the official client shows no text of an answer."""
        first = next(iter(await trial_rows.of_experiment(session, row.id)), None) if notes else None
        if first is not None:
            text = "\n".join(notes)
            await logs.say(session, first.task_id, f"{first.task_id}.1", text, self._clock.now(), "WARNING")

    async def _warm_start(self, session: ReadSession, row: ExperimentRow) -> str | None:
        searcher = row.config["searcher"]
        if searcher.get("source_trial_id"):
            source = await trial_rows.get(session, searcher["source_trial_id"])
            newest = await checkpoints.newest_completed(session, source.task_id)
            if newest is None:  # deleted since the check
                raise BadRequest(f"trial {source.id} has no checkpoint to start from")
            return newest.uuid
        uuid_: str | None = searcher.get("source_checkpoint_uuid")
        return uuid_

    def _row(
        self,
        submission: Submission,
        config: dict[str, Any],
        principal: Principal,
        context_hash: str | None,
        size: int,
    ) -> ExperimentRow:
        searcher = config["searcher"]
        return ExperimentRow(
            job_id=str(uuid.uuid4()),
            name=config["name"],
            description=config.get("description") or "",
            notes="",
            labels=list(config.get("labels") or []),
            state=ExperimentState.PAUSED,
            config=config,
            original_config=submission.config,
            context_hash=context_hash,
            context_size=size,
            user_id=principal.user_id,
            project_id=submission.project_id or cluster_check.DEFAULT_PROJECT_ID,
            parent_id=submission.parent_id,
            archived=False,
            progress=0.0,
            start_time=self._clock.now(),
            pool=config["resources"]["resource_pool"],
            searcher_type=searcher["name"],
            searcher_metric=searcher["metric"],
            smaller_is_better=searcher.get("smaller_is_better", True),
            searcher_snapshot={},
            searcher_cursor=NOT_BEGUN if searcher["name"] in IN_TASK else 0,
        )


def _warnings_of_projects(checked: CheckResult, *, without: bool) -> list[str]:
    """``without``: none, because the submission itself says the project."""
    found = [each for each in checked.diagnostics if each.code == cluster_check.NO_PROJECT]
    return [] if without else [f"{each.message}; {each.hint}" for each in found]


def fill_in(config: dict[str, Any], settings: Settings) -> None:
    """Sets the fields that only the cluster knows."""
    resources = config["resources"]
    pool = settings.pool_for(resources.get("resource_pool") or "", resources["slots_per_trial"])
    resources["resource_pool"] = pool
    if resources.get("priority") is None:
        resources["priority"] = settings.priority_in(pool)
    if config["reproducibility"].get("experiment_seed") is None:
        config["reproducibility"]["experiment_seed"] = random.SystemRandom().getrandbits(32)
