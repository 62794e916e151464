"""The jobs of a multirun: the overrides that the application's sweeper gives to its launcher."""

from __future__ import annotations

import math
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from determined_workflows.hydra.composer.problems import Invalid, Problem


class _ResultsNeeded(BaseException):
    """A sweeper asked for the result of a job."""


class _NoResult:
    """Stands for the result of a job that has not run."""

    def __getattr__(self, name: str) -> object:
        raise _ResultsNeeded

    __float__ = __int__ = __bool__ = __iter__ = __getitem__ = __lt__ = __gt__ = __le__ = __ge__ = __getattr__


def jobs(hydra: Any, config: Any, limit: int) -> list[list[str]]:  # noqa: ANN401  # Hydra's
    """Returns the overrides of each job.

    Raises Invalid if there are more than ``limit``, or if later jobs depend on the results of earlier ones.
    """
    from hydra._internal.callbacks import Callbacks
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.plugins import Plugins
    from hydra.core.utils import JobReturn, JobStatus
    from hydra.types import HydraContext
    from omegaconf import read_write

    all_overrides: list[list[str]] = []

    class Recorder:
        """A launcher that keeps the overrides and runs nothing."""

        def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
            all_overrides.extend(list(each) for each in job_overrides)
            _check(len(all_overrides), limit)
            returns = [JobReturn(status=JobStatus.COMPLETED) for _ in job_overrides]
            for each in returns:
                each._return_value = _NoResult()  # noqa: SLF001
            return returns

    arguments = [str(each) for each in config.hydra.overrides.task]
    plugins: Any = Plugins.instance()
    plugins.instantiate_launcher = lambda **_: Recorder()
    with TemporaryDirectory() as folder:
        copied = config.copy()
        with read_write(copied.hydra), read_write(copied.hydra.sweep):
            copied.hydra.sweep.dir = folder
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks())
        sweeper = plugins.instantiate_sweeper(hydra_context=context, task_function=_no_task, config=copied)
        if isinstance(sweeper, BasicSweeper):
            sweeper.validate_batch_is_legal = lambda batch: None  # type: ignore[method-assign]  # every job is composed later
            _check(_count([*sweeper._parse_config(), *arguments], hydra.config_loader), limit)  # noqa: SLF001
        try:
            sweeper.sweep(arguments)
        except _ResultsNeeded:
            name = type(sweeper).__name__
            raise Invalid(
                Problem(
                    f"the sweeper {name} chooses jobs by the results of earlier ones",
                    "start it with `python SCRIPT --multirun hydra/launcher=det`, which waits for results",
                )
            ) from None
    if not all_overrides:
        raise Invalid(Problem("the multirun has no jobs: a sweep has no values", "look at the ends of its ranges"))
    return all_overrides


def _no_task(_: object) -> None:
    raise AssertionError("a recorded sweep runs no job")


def _check(count: int, limit: int) -> None:
    if count > limit:
        raise Invalid(
            Problem(
                f"the multirun has {count:,} jobs, more than the limit of {limit:,}",
                "sweep over fewer values, or run it in parts",
            )
        )


def _count(arguments: Sequence[str], loader: Any) -> int:  # noqa: ANN401  # Hydra's
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import RangeSweep

    counts: dict[str, int] = {}
    for override in OverridesParser.create(config_loader=loader).parse_overrides(list(arguments)):
        value = override.value() if override.is_sweep_override() else None
        if isinstance(value, RangeSweep) and value.start is not None and value.stop is not None:
            counts[override.get_key_element()] = _length(override.input_line, value)
        elif override.is_discrete_sweep():
            counts[override.get_key_element()] = sum(1 for _ in override.sweep_string_iterator())
        else:
            counts[override.get_key_element()] = 1
    return math.prod(counts.values())


def _length(override: str | None, swept: Any) -> int:  # noqa: ANN401  # Hydra's RangeSweep
    try:
        length: int = math.ceil((swept.stop - swept.start) / swept.step)
    except (ZeroDivisionError, OverflowError, ValueError):  # a step of 0, and ends that are inf or nan
        raise Invalid(
            Problem("the range never ends", "give it an end, and a step other than 0", override=override)
        ) from None
    return max(0, length)
