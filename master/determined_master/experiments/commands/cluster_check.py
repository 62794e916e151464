"""Checks what a configuration names of this cluster: a pool, a project, and a trial or checkpoint to start from."""

from collections.abc import Mapping
from typing import Any

from determined.config.findings import Finding
from determined.states import CheckpointRole, CheckpointState, state_phrase
from determined_master.allocations.exit_line import CANNOT_START
from determined_master.checkpoints import repository as checkpoints
from determined_master.db.session import ReadSession
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.settings.pool_settings import unknown
from determined_master.settings.settings import Settings
from determined_master.trials import repository as trials
from determined_master.trials.slot_requests import trial_groups
from determined_master.users import repository as users

CODE = "E208"
TOO_LARGE, WAITS, NO_PROJECT = "E210", "W505", "W507"
DEFAULT_PROJECT_ID = 1


async def findings(
    session: ReadSession, config: Mapping[str, Any], settings: Settings, managers: ResourceManagers
) -> list[Finding]:
    """Returns an error for each object that this cluster does not have. ``config``: the effective configuration."""
    problems = []
    pool = config["resources"]["resource_pool"]
    if pool and pool not in settings.pools:
        problems.append(Finding(CODE, ("resources", "resource_pool"), *unknown(pool, settings.pools)))
    else:
        problems += await _size(session, config, settings, managers)
    problems += await _project(session, config["workspace"], config["project"])
    searcher = config["searcher"]
    if source := searcher.get("source_trial_id"):
        problems += await _trial(session, source)
    elif uuid := searcher.get("source_checkpoint_uuid"):
        problems += await _checkpoint(session, uuid)
    return problems


async def _project(session: ReadSession, workspace: str, project: str) -> list[Finding]:
    """Returns a warning for a project that does not exist: there are no projects of one's own yet."""
    if not project or await users.find_project(session, workspace, project) is not None:
        return []
    default = (await users.get_project(session, DEFAULT_PROJECT_ID)).name
    if await users.has_workspace(session, workspace):
        path, text = "project", f'project "{project}" does not exist in workspace "{workspace}"'
    else:
        path, text = "workspace", f'workspace "{workspace}" with project "{project}" does not exist'
    hint = "remove both lines; labels tell experiments apart"
    return [Finding(NO_PROJECT, (path,), f'{text}; the experiment goes to "{default}"', hint, severity="warning")]


async def _size(
    session: ReadSession, config: Mapping[str, Any], settings: Settings, managers: ResourceManagers
) -> list[Finding]:
    """Returns an error, or a warning, for a trial that its pool can never hold."""
    pool = settings.pool_for(config["resources"]["resource_pool"], config["resources"]["slots_per_trial"])
    reason = await managers.validate(session, pool, trial_groups(config))
    if reason is None:
        return []
    path = ("resources", "slots_per_trial")
    text = f"{CANNOT_START}: a trial {reason}"
    if settings.launch_error:
        return [Finding(TOO_LARGE, path, text)]
    return [Finding(WAITS, path, text, severity="warning")]


async def _trial(session: ReadSession, trial_id: int) -> list[Finding]:
    path = ("searcher", "source_trial_id")
    row = await trials.find(session, trial_id)
    if row is None:
        return [Finding(CODE, path, f"trial {trial_id} does not exist")]
    if await checkpoints.newest_completed(session, row.task_id) is None:
        return [Finding(CODE, path, f"trial {trial_id} has no checkpoint to start from")]
    return []


async def _checkpoint(session: ReadSession, uuid: str) -> list[Finding]:
    path = ("searcher", "source_checkpoint_uuid")
    row = await checkpoints.find(session, uuid)
    if row is None:
        return [Finding(CODE, path, f"checkpoint {uuid} does not exist")]
    if row.role is CheckpointRole.OUTPUTS:
        return [Finding(CODE, path, f"checkpoint {uuid} holds outputs of a script, from which no training can start")]
    if row.state is not CheckpointState.COMPLETED:
        return [Finding(CODE, path, f"checkpoint {uuid} has no files any more ({state_phrase(row.state)})")]
    return []
