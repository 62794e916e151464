"""``pytorch.init()``: a trial context on the cluster or off it."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from determined import core
from determined.pytorch import _device
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._gradient_sync import GradientSync, HorovodSync
from determined.pytorch._setup import Setup, end_process_group, framework


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
    """Yields the context for a :class:`PyTorchTrial`, on the cluster or off it.

    Args:
        hparams: hyperparameters by name; by default those of the trial on the cluster.
        exp_conf: experiment configuration; by default that of the cluster.
        distributed: ranks of the workers; by default they come from the launcher.
        aggregation_frequency: number of batches per optimizer step.
        enable_tensorboard_logging: accepted for compatibility, without effect.
        average_aggregated_gradients: divide accumulated gradients by ``aggregation_frequency``.

    Raises:
        ValueError: ``aggregation_frequency`` is below 1.

    >>> with init(hparams={"global_batch_size": 32}) as context:  # doctest: +SKIP
    ...     trial = MyTrial(context)
    """
    setup = Setup.make(hparams, exp_conf)
    by_horovod = setup.layer == "horovod"
    with contextlib.ExitStack() as stack:
        averaging: GradientSync | None = None
        if by_horovod:
            hvd = framework("horovod.torch")
            hvd.init()
            averaging = HorovodSync(hvd) if hvd.size() > 1 else None
            if distributed is None and hvd.size() > 1:
                distributed = core.DistributedContext.from_horovod(hvd)
        elif distributed is None and setup.has_peers:
            distributed = (
                core.DistributedContext.from_deepspeed()
                if setup.layer == "deepspeed"
                else core.DistributedContext.from_torch_distributed()
            )
        context = stack.enter_context(setup.opened(distributed))
        peers = context.distributed
        device = _device.find(peers.local_rank)
        if peers.size > 1 and not by_horovod and not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
            stack.callback(end_process_group, torch.distributed.group.WORLD)
        setup.seed_streams()
        yield PyTorchTrialContext(
            context,
            hparams=setup.hparams,
            exp_conf=setup.config,
            trial_seed=setup.seed,
            device=device,
            aggregation_frequency=aggregation_frequency,
            average_aggregated_gradients=average_aggregated_gradients,
            averaging=averaging,
        )
