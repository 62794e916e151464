"""The part of ``init`` that all kinds of trial share: cluster information and the Core API."""

import contextlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from determined import core
from determined.core._cluster_info import read
from determined.errors import FrameworkMissing
from determined.pytorch import _rng
from determined_launch import environment


def framework(name: str) -> Any:  # noqa: ANN401  # an optional framework without types
    """Imports a framework that only some trials need. Raises FrameworkMissing if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise FrameworkMissing(name.partition(".")[0]) from None


def end_process_group(made: torch.distributed.ProcessGroup | None) -> None:
    """Destroys torch's process group if it is still the one that ``init`` made: a script may have ended it."""
    if torch.distributed.is_initialized() and torch.distributed.group.WORLD is made:
        torch.distributed.destroy_process_group()


@dataclass(frozen=True)
class Setup:
    """Hyperparameters, configuration and seed of the task; the user's arguments replace the cluster's values."""

    environ: Mapping[str, str]
    is_managed: bool
    config: dict[str, Any]
    hparams: dict[str, Any]
    seed: int

    @classmethod
    def make(cls, hparams: Mapping[str, Any] | None, exp_conf: Mapping[str, Any] | None) -> "Setup":
        """Builds the setup from arguments and environment."""
        environ = environment.current()
        info = read(environ)
        config = dict(exp_conf) if exp_conf is not None else configuration(info, environ)
        if hparams is None:
            text = environment.value_of(environ, environment.HPARAMS)
            hparams = info.trial.hparams if info else json.loads(text or "{}")
        seed = info.trial.trial_seed if info else _local_seed(config, environ)
        return cls(environ, info is not None, config, dict(hparams or {}), seed)

    @property
    def layer(self) -> str | None:
        """Returns the launcher of this process.

        Ours set a variable; others are recognized by the variables that they set.
        """
        for variable, name in (
            (environment.USE_TORCH_DISTRIBUTED, "torch_distributed"),
            (environment.USE_HOROVOD, "horovod"),
            (environment.USE_DEEPSPEED, "deepspeed"),
        ):
            if self.environ.get(variable):
                return name
        if self.environ.get("HOROVOD_SIZE"):
            return "horovod"
        if self.environ.get("LOCAL_SIZE") and self.environ.get("WORLD_SIZE"):
            return "deepspeed"
        return "torch_distributed" if self.environ.get("WORLD_SIZE") else None

    @property
    def has_peers(self) -> bool:
        """Returns True if torch's or deepspeed's launcher started more than one process."""
        return int(self.environ.get("WORLD_SIZE") or 1) > 1

    def opened(self, distributed: core.DistributedContext | None) -> contextlib.AbstractContextManager[core.Context]:
        """Opens the Core API such that only the trainer asks for preemption."""
        return core.init(
            distributed=distributed,
            checkpoint_storage=None if self.is_managed else _local_storage(self.config),
            preempt_mode=core.PreemptMode.ChiefOnly,
        )

    def seed_streams(self) -> None:
        """Seeds the random streams of all slots equally, so that all slots make the same models."""
        _rng.seed_all(_rng.mix(self.seed, 0))


def configuration(info: core.ClusterInfo | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """Returns the experiment configuration; empty if there is none."""
    if info is not None:
        return info.trial._config  # noqa: SLF001  # the underscore keeps it out of the public interface
    return dict(json.loads(environment.value_of(environ, environment.EXPERIMENT_CONFIG) or "{}"))


def _local_storage(config: Mapping[str, Any]) -> Any:  # noqa: ANN401  # an optional framework without types
    """Returns the storage off the cluster: the configured one only if it is a plain folder.

    The other kinds of storage rarely exist there.
    """
    storage = config.get("checkpoint_storage") or {}
    return storage if storage.get("type") == "directory" else None


def _local_seed(config: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    given = environ.get(environment.TRIAL_SEED)
    return int(given) if given else int((config.get("reproducibility") or {}).get("experiment_seed") or 0)
