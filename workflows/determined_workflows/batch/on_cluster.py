"""``--on det``: composes the experiment of a job, and creates it on a cluster."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from determined.client.session import Session
from determined.context import pack
from determined.context.ignore import line_for
from determined.errors import ConfigError
from determined_workflows.batch import (
    command_line,
    core_api,
    data_archive,
    environment_job,
    job_record,
    job_script,
    submission,
    sweep,
    sweep_search,
)
from determined_workflows.batch import project as projects
from determined_workflows.batch.data_archive import Archive
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.project import Project
from determined_workflows.batch.settings import DISTRIBUTED, SWEEP, JobSettings, as_record
from determined_workflows.batch.submission import Request, Say
from determined_workflows.batch.sweep_search import SweepSearch, TrialCommand
from determined_workflows.batch.target_options import DET
from determined_workflows.composed_experiment import completed, create, refuse_composed

TASK_FOLDER = ".det_batch"
CONFIG_NAME = "batch.yaml"
METRIC = "loss"
"""Metric of the search of a job that names none: it decides which trial is shown as the best one."""
PLAIN_TIMEOUT_SECONDS = 10
"""A plain program does not know that its trial is paused: it is ended after this time."""
RUN = "sweep_run"
_ENVIRONMENTS = ("environment=", "environment.image", "environment.pip", "environment.venv")
"""Settings that name another environment than the project's list of packages."""
_IN_TASK = ("cluster_task/run_in_task.py", "task/node_data.py", "task/wandb_key.py")


@dataclass(frozen=True)
class PreparedExperiment:
    """What is sent to the master. ``job``: what its tasks read."""

    request: Request
    config: str
    job: Mapping[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def shown_command(self) -> str:
        """The command of each trial."""
        arguments = "HYPERPARAMETERS" if self.job["arguments"] else ""
        return " ".join(filter(None, [self.job["command"], arguments, self.job["behind"]]))


def prepare(
    asked: Request,
    pools: Sequence[str],
    say: Say,
    *,
    searcher: str | None = None,
    changes: Sequence[str] = (),
    is_dry_run: bool = False,
) -> PreparedExperiment:
    """Checks the request and makes its caches, unless ``is_dry_run``. ``pools``: names of the cluster's. Raises
    ConfigError.

    ``searcher``: one of ours, in the place of the agents of Weights & Biases. ``changes``: ``key.path=value``.
    """
    settings, project = asked.settings, asked.project
    refuse_composed(changes, origin="the command file and the flags")
    _check_pool(settings.partition, pools)
    search = _search(asked, searcher)
    workdir = submission.workdir_of(settings, project)
    if not workdir.resolve().is_relative_to(project.root):
        raise ConfigError(f"--workdir {settings.workdir}: --on det sends {project.root}, and that is outside of it")
    line = (
        command_line.plan_for_cluster(settings, asked.command, asked.sweep_id) if _takes_command_file(search) else None
    )
    own = search.command if search and search.command else None
    command = own or TrialCommand(line.text if line else "", "values" if search else "")
    script = core_api.script_of(f"{command.before} {command.behind}", workdir)
    paths = data_archive.check(project, settings.data)
    projects.check_writable(project.outputs)
    document = experiment_config(asked, search, uses_core_api=script is not None and core_api.is_used(script))
    _add_environment(document, project, changes, say)
    text, warnings = completed(document, changes, name=CONFIG_NAME, title=f"the project {project.name}")
    data = data_archive.pack(project, paths, say) if paths and not is_dry_run else None
    notes = [*(line.notes if line else ()), *(search.notes if search else ()), *_of_nodes(settings)]
    notes.append(core_api.note(script))
    job = job_file(asked, command, data, list(search.hyperparameters) if search else [])
    job["workdir"] = str(workdir.resolve().relative_to(project.root))
    return PreparedExperiment(asked, text, job, (*notes, *warnings.splitlines()))


def experiment_config(asked: Request, search: SweepSearch | None, *, uses_core_api: bool) -> dict[str, Any]:
    """Returns the configuration of the experiment: a single trial, or the runs of a sweep."""
    settings = asked.settings
    config: dict[str, Any] = {
        "name": f"{settings.label}-{asked.project.name}-{settings.exp_name}",
        "entrypoint": f"python3 {TASK_FOLDER}/run_in_task.py",
        "hyperparameters": {},
        "searcher": {"name": "single", "metric": METRIC},
        "resources": {"slots_per_trial": slots_of(settings)},
        "max_restarts": 0,
        "labels": ["batch"],
    }
    if settings.kind != DISTRIBUTED:  # one process has one machine
        config["resources"]["is_single_node"] = True
    if settings.partition:
        config["resources"]["resource_pool"] = settings.partition
    if not uses_core_api:
        config["preemption_timeout"] = PLAIN_TIMEOUT_SECONDS
    if search is not None:
        config["hyperparameters"], config["searcher"] = dict(search.hyperparameters), dict(search.searcher)
    elif settings.kind == SWEEP:
        trials = [{RUN: number} for number in range(1, (asked.count or 1) + 1)]
        config["searcher"] = {"name": "list", "metric": METRIC, "trials": trials}
    if asked.max_parallel and config["searcher"]["name"] != "single":
        config["searcher"]["max_concurrent_trials"] = asked.max_parallel
    return config


def slots_of(settings: JobSettings) -> int:
    """Returns the slots of a trial: nodes times GPUs; a job without GPUs has one slot for each node.

    >>> slots_of(JobSettings(nodes=2, gpus=4)), slots_of(JobSettings())
    (8, 1)
    """
    return settings.nodes * (settings.gpus or 1)


def job_file(asked: Request, command: TrialCommand, data: Archive | None, parameters: Sequence[str]) -> dict[str, Any]:
    """Returns what the tasks read. ``parameters``: hyperparameters that become arguments, in their order."""
    settings = asked.settings
    return {
        "command": command.before,
        "arguments": command.form,
        "behind": command.behind,
        "parameters": list(parameters),
        "variables": job_script.variables(settings, asked.project),
        "environment": dict(asked.site.environment),
        "is_distributed": settings.kind == DISTRIBUTED,
        "is_agent": sweep.is_agent(command.before),
        "data": data.as_record() if data else None,
    }


def submit(session: Session, prepared: PreparedExperiment, *, is_paused: bool = False) -> tuple[JobRecord, list[str]]:
    """Creates the experiment. Returns its record, and notes about files that were left out of the context.

    Raises ConfigError with what the master finds wrong, and ContextError if the project cannot be packed.
    """
    asked = prepared.request
    project, settings = asked.project, asked.settings
    excludes = [f"/{name}/" for name in (TASK_FOLDER, environment_job.LINK, environment_job.FOLDER)]
    excludes.append(f"/{environment_job.LINK}")
    if project.scratch_dir.is_relative_to(project.root):
        excludes.append(line_for(str(project.scratch_dir.relative_to(project.root))) + "/")
    folder, nonce = job_record.new_folder(project, settings.label, settings.exp_name)
    with _task_folder(prepared.job) as task:
        packed = pack(project.root, [task], exclude=excludes)
    id = create(session, prepared.config, packed, name=CONFIG_NAME, is_paused=is_paused)
    record = JobRecord(
        folder=folder,
        nonce=nonce,
        label=settings.label,
        job_name=f"{settings.label}-{project.name}-{settings.exp_name}",
        output="",
        command=str(prepared.job["command"]),
        words=tuple(asked.words),
        time_seconds=None,
        settings=as_record(settings),
        target=DET,
        master=session.master,
    )
    try:
        (project.scratch_dir / settings.exp_name / "checkpoints").mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True)
        record = job_record.with_job(record, str(id), ())
        job_record.store(record)
    except OSError as error:
        raise ConfigError(
            f"experiment {id} was created, but its record cannot be written: {error.filename}: {error.strerror}; "
            f"`det experiment describe {id}` shows it"
        ) from None
    return record, packed.notes


def _of_nodes(settings: JobSettings) -> list[str]:
    if settings.nodes == 1:
        return []
    return [
        f"--nodes {settings.nodes}: the cluster decides how many machines share the {slots_of(settings)} slots; NNODES "
        "and NUM_TRAINERS are those of the allocation"
    ]


def _check_pool(partition: str | None, pools: Sequence[str]) -> None:
    if partition is not None and partition not in pools:
        known = ", ".join(sorted(pools))
        raise ConfigError(
            f'--partition "{partition}": the cluster has no pool of that name; there are {known}; nothing was submitted'
        )


def _search(asked: Request, searcher: str | None) -> SweepSearch | None:
    if searcher is None:
        return None
    if asked.settings.kind != SWEEP:
        raise ConfigError("--searcher has an effect with --job-type sweep only; nothing was submitted")
    file = asked.project.files / sweep.FILE_NAME
    content = sweep.read(file)
    if content is None:
        raise ConfigError(f"--searcher {searcher} needs the parameters and the metric of {file}, which does not exist")
    if searcher == "grid" and asked.count is not None:
        raise ConfigError(f"--count {asked.count}: a grid has as many trials as combinations; leave it out")
    search = sweep_search.of(content, searcher, asked.count or sweep.count_runs(content), file)
    if search.command is None and sweep.is_agent(asked.command):
        raise ConfigError(
            f"{file} names no `program`, and the command is one of `wandb agent`, which --searcher replaces; name the "
            "program in one of them"
        )
    return search


def _takes_command_file(search: SweepSearch | None) -> bool:
    return search is None or search.command is None


def _add_environment(document: dict[str, Any], project: Project, changes: Sequence[str], say: Say) -> None:
    """Names the environment of the tasks: what the project's list of packages builds, or the user's own folder."""
    if any(change.startswith(_ENVIRONMENTS) for change in changes):
        return
    link = project.root / environment_job.LINK
    if environment_job.is_own(link):
        say(f"{link} is your own environment; it is used as it is, on agents that have it there")
        document["environment"] = {"image": f"venv:{link.resolve()}"}
        return
    name = next((each for each in environment_job.LISTS if (project.root / each).is_file()), None)
    if name is not None:
        document["environment"] = {"venv": {"requirements": name}}


@contextmanager
def _task_folder(job: Mapping[str, Any]) -> Iterator[Path]:
    with TemporaryDirectory() as above:
        folder = Path(above, TASK_FOLDER)
        folder.mkdir()
        for name in _IN_TASK:
            shutil.copy(Path(__file__).parent / name, folder)
        (folder / "job.json").write_text(json.dumps(job, indent=1, ensure_ascii=False), encoding="utf-8")
        yield folder
