"""The launcher: submits the jobs of a multirun as one experiment, waits, and returns their results to the sweeper."""

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn, JobStatus, filter_overrides
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from hydra_plugins.hydra_det_launcher.remembered_repository import RememberedRepository
from omegaconf import DictConfig, OmegaConf, open_dict

if TYPE_CHECKING:
    from determined_workflows.hydra.run_record import Record

log = logging.getLogger(__name__)
_OWN_KEYS = ("config", "fail_fast")


class NotLaunched(CompactHydraException):
    """The jobs cannot be submitted; Hydra prints the message without a traceback."""


class JobFailed(CompactHydraException):
    """A job failed on the cluster; the message has the reason."""


class DetLauncher(Launcher):
    """Hydra makes it from ``hydra.launcher``; ``keys`` are those of :class:`DetLauncherConf`."""

    def __init__(self, **keys: Any) -> None:  # noqa: ANN401  # values of a configuration
        self._keys = {key: _plain(each) for key, each in keys.items()}
        self._config = DictConfig({})
        self._context: HydraContext | None = None
        self._composed: dict[tuple[str, ...], DictConfig] = {}
        self._task: TaskFunction | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keeps what Hydra gives to a launcher before the first batch.

        Sweepers compose each job to validate it before they launch it. The launcher keeps that composition, and what
        was read for it: composing is most of what 20 short jobs cost here.
        """
        self._context, self._task, self._config = hydra_context, task_function, config
        loader: Any = hydra_context.config_loader
        loader.repository = RememberedRepository(loader.repository)
        compose = loader.load_sweep_config

        def remembered(master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
            found: DictConfig = compose(master_config, sweep_overrides)
            self._composed[tuple(sweep_overrides)] = found
            return found

        loader.load_sweep_config = remembered

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Runs a batch of jobs and returns their results in the same order."""
        # Hydra imports every plug-in at the start of every application; the cluster's client is only needed here.
        from determined.client.sign_in import sign_in
        from determined.errors import DeterminedError
        from determined_workflows.hydra import launcher_settings, project, submission
        from determined_workflows.hydra.job_results import wait
        from determined_workflows.hydra.run_record import Record

        for number, overrides in enumerate(job_overrides, initial_job_idx):
            log.info("\t#%d : %s", number, " ".join(filter_overrides(overrides)))
        configs = [self._job_config(each, number) for number, each in enumerate(job_overrides, initial_job_idx)]
        try:
            composition = self._composition(job_overrides, configs, initial_job_idx)
            keys = {key: value for key, value in self._keys.items() if key not in _OWN_KEYS}
            for warning in launcher_settings.warnings(keys):
                log.warning(warning)
            prepared = submission.prepare(
                composition,
                project.find(composition),
                launcher_settings.read(keys),
                [f"{key}={json.dumps(value)}" for key, value in self._keys["config"].items()],
                is_checked=False,
            )
            for text in prepared.warnings:
                log.warning(text)
            with sign_in() as session:
                experiment_id, left_out = submission.submit(session, prepared)
                for reason in left_out:
                    log.warning("left out: %s", reason)
                log.info("experiment %d: %d jobs", experiment_id, len(composition.jobs))
                self._write_jobs(experiment_id, job_overrides, initial_job_idx)
                record = Record("det", len(composition.jobs), session.master, experiment_id, first_job=initial_job_idx)
                self._keep(record)
                outcomes = wait(session, experiment_id, len(composition.jobs), is_fail_fast=self._keys["fail_fast"])
        except DeterminedError as error:
            raise NotLaunched(error.message) from None
        return [
            _job_return(outcome.value, outcome.failure, list(overrides), config)
            for outcome, overrides, config in zip(outcomes, job_overrides, configs, strict=True)
        ]

    def _job_config(self, overrides: Sequence[str], number: int) -> DictConfig:
        assert self._context is not None
        key = tuple(overrides)
        if key not in self._composed:
            self._context.config_loader.load_sweep_config(self._config, list(overrides))
        config = self._composed.pop(key)
        with open_dict(config):
            config.hydra.job.id = str(number)
            config.hydra.job.num = number
        return config

    def _composition(self, overrides: Sequence[Sequence[str]], configs: Sequence[DictConfig], first: int) -> Any:  # noqa: ANN401  # see launch about imports
        from determined_workflows.hydra import composition
        from determined_workflows.hydra.composer import facts
        from determined_workflows.hydra.composer.imports import ImportPath

        main = sys.modules["__main__"]
        script = Path(main.__file__ or sys.argv[0])
        module = main.__spec__.name if main.__spec__ is not None else None  # of `python -m`
        sources = self._config.hydra.runtime.config_sources
        folder = next((each.path for each in sources if each.provider == "main" and each.schema == "file"), None)
        jobs = []
        for number, (each, config) in enumerate(zip(overrides, configs, strict=True), first):
            facts.set_job(config, number, is_sweep=True)
            jobs.append(facts.of_job(config, {}, list(each)))
        answer = {
            "mode": "MULTIRUN",
            "config_folder": folder,
            "config_name": self._config.hydra.job.config_name,
            "sweep_dir": str(self._config.hydra.sweep.dir),
            "python": sys.prefix,
            "jobs": jobs,
            "import_folders": ImportPath().folders(),
            **facts.of_launch(self._config),
        }
        composition.refuse_problems(script, answer)
        return composition.from_answer(
            script, _known(sys.argv[1:]), answer, working_folder=Path.cwd(), first_job=first, module=module
        )

    def _keep(self, record: "Record") -> None:
        """Notes the experiment in the folder of the sweep, where ``det hydra status`` finds it."""
        try:
            record.write(Path(str(self._config.hydra.sweep.dir)))
        except OSError as error:  # the folder may exist on the agents only
            log.warning("`det hydra status` will not find experiment %s: %s", record.experiment, error)

    def _write_jobs(self, experiment_id: int, overrides: Sequence[Sequence[str]], first: int) -> None:
        folder = Path(str(self._keys["submitit_folder"]).replace("%j", str(experiment_id)))
        folder.mkdir(parents=True, exist_ok=True)
        jobs = [{"job": number, "overrides": list(each)} for number, each in enumerate(overrides, first)]
        text = json.dumps({"experiment_id": experiment_id, "jobs": jobs}, indent=1)
        (folder / "jobs.json").write_text(text, encoding="utf-8")


def _plain(value: Any) -> Any:  # noqa: ANN401  # a value of a configuration
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def _job_return(value: object, failure: str | None, overrides: list[str], config: DictConfig) -> JobReturn:
    found = JobReturn(overrides=overrides, hydra_cfg=config)
    found.status = JobStatus.FAILED if failure else JobStatus.COMPLETED
    found.return_value = JobFailed(failure) if failure else value
    return found


def _known(arguments: list[str]) -> list[str]:
    """Returns the overrides, and the flags that choose a configuration under their long names."""
    from hydra._internal.utils import get_args_parser

    args = get_args_parser().parse_args(arguments)
    names = ("config_name", "config_path", "config_dir")
    flags = [[f"--{name.replace('_', '-')}", value] for name in names if (value := getattr(args, name)) is not None]
    return [*(each for flag in flags for each in flag), *args.overrides]
