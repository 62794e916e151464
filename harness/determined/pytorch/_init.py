"""``pytorch.init()``: a trial context on the cluster or off it."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from determined import core
from determined.core._cluster_info import read
from determined.pytorch import _device, _streams
from determined.pytorch._context import PyTorchTrialContext
from determined_launch import environment


@contextlib.contextmanager
def init(
    *,
    hparams: Mapping[str, Any] | None = None,
    exp_conf: Mapping[str, Any] | None = None,
    distributed: core.DistributedContext | None = None,
    aggregation_frequency: int = 1,
    enable_tensorboard_logging: bool = True,
    average_aggregated_gradients: bool = True,
) -> Iterator[PyTorchTrialContext]:
    """The context for a trial; hyperparameters and configuration come from the cluster unless given.

    >>> with init(hparams={"global_batch_size": 32}) as context:  # doctest: +SKIP
    ...     trial = MyTrial(context)
    """
    environ = environment.current()
    info = read(environ)
    config = dict(exp_conf) if exp_conf is not None else _config(info, environ)
    if hparams is None:
        hparams = info.trial.hparams if info else dict(json.loads(environ.get(environment.HPARAMS) or "{}"))
    wide = bool(environ.get(environment.USE_TORCH_DISTRIBUTED)) and int(environ.get("WORLD_SIZE") or 1) > 1
    with contextlib.ExitStack() as stack:
        if distributed is None and wide:
            distributed = core.DistributedContext.from_torch_distributed()
        context = stack.enter_context(
            core.init(
                distributed=distributed,
                checkpoint_storage=None if info else _local_storage(config),
                preempt_mode=core.PreemptMode.ChiefOnly,
            )
        )
        peers = context.distributed
        device = _device.find(peers.local_rank)
        if peers.size > 1 and not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
            stack.callback(torch.distributed.destroy_process_group)
        seed = info.trial.trial_seed if info else _local_seed(config, environ)
        _streams.seed_all(_streams.mix(seed, 0))
        yield PyTorchTrialContext(
            context,
            hparams=hparams or {},
            exp_conf=config,
            trial_seed=seed,
            device=device,
            aggregation_frequency=aggregation_frequency,
            average_aggregated_gradients=average_aggregated_gradients,
        )


def _config(info: core.ClusterInfo | None, environ: Mapping[str, str]) -> dict[str, Any]:
    if info is not None:
        return info.trial._config
    return dict(json.loads(environ.get(environment.EXPERIMENT_CONFIG) or "{}"))


def _local_storage(config: Mapping[str, Any]) -> Any:
    """Off the cluster the configured place usually does not exist; only a plain folder is taken."""
    storage = config.get("checkpoint_storage") or {}
    return storage if storage.get("type") == "directory" else None


def _local_seed(config: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    given = environ.get(environment.TRIAL_SEED)
    return int(given) if given else int((config.get("reproducibility") or {}).get("experiment_seed") or 0)
