"""``deepspeed.init()``: a trial context on the cluster or off it, with deepspeed ready to make engines."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from determined import core
from determined.pytorch import _device
from determined.pytorch._setup import Setup, end_process_group, framework
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined_launch import environment


@contextlib.contextmanager
def init(
    *,
    hparams: Mapping[str, Any] | None = None,
    exp_conf: Mapping[str, Any] | None = None,
    distributed: core.DistributedContext | None = None,
    enable_tensorboard_logging: bool = True,
) -> Iterator[DeepSpeedTrialContext]:
    """Yields the context for a :class:`DeepSpeedTrial`, on the cluster or off it.

    Args:
        hparams: hyperparameters by name; by default those of the trial on the cluster.
        exp_conf: experiment configuration; by default that of the cluster.
        distributed: ranks of the workers; by default they come from the launcher.
        enable_tensorboard_logging: accepted for compatibility, without effect.

    Raises:
        FrameworkMissing: deepspeed is not installed.

    >>> with init(hparams={"width": 32}) as context:  # doctest: +SKIP
    ...     trial = MyTrial(context)
    """
    setup = Setup.make(hparams, exp_conf)
    engine_maker = framework("deepspeed")
    with contextlib.ExitStack() as stack:
        if distributed is None and setup.has_peers:
            distributed = core.DistributedContext.from_deepspeed()
        context = stack.enter_context(setup.opened(distributed))
        device = _device.find(context.distributed.local_rank)
        had_group = torch.distributed.is_initialized()
        _connect(engine_maker, context.distributed, device)
        if not had_group:
            stack.callback(end_process_group, torch.distributed.group.WORLD)
        setup.seed_streams()
        yield DeepSpeedTrialContext(
            context, hparams=setup.hparams, exp_conf=setup.config, trial_seed=setup.seed, device=device
        )


def _connect(engine_maker: Any, peers: core.DistributedContext, device: torch.device) -> None:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
    if device.type == "cpu":
        # it would be compiled at every first start, fail without a compiler, and leave 66 MiB per rank in /dev/shm
        engine_maker.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    if peers.size == 1 and not torch.distributed.is_initialized():
        # deepspeed needs a process group even for one process, and would ask MPI for it
        environment.put({"LOCAL_RANK": "0"})
        backend = "nccl" if device.type == "cuda" else "gloo"
        store = torch.distributed.HashStore()  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateImportUsage]  # torch exports it conditionally
        torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
    engine_maker.init_distributed()
