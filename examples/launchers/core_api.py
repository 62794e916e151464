"""A plain script over the Core API that runs in one process and under torchrun, horovodrun and deepspeed alike."""

import logging
import os
import pathlib

import torch
from spirals import DEFAULTS, fingerprint, network, points
from torch import nn

import determined as det
from determined.core import DistributedContext


def peers() -> DistributedContext | None:
    """Every launcher leaves its own variables behind."""
    if "HOROVOD_SIZE" in os.environ:
        import horovod.torch as hvd

        hvd.init()
        return DistributedContext.from_horovod(hvd)
    if "CROSS_SIZE" in os.environ:
        return DistributedContext.from_deepspeed()
    return DistributedContext.from_torch_distributed() if "WORLD_SIZE" in os.environ else None


def main() -> None:
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info is not None else DEFAULTS
    seed = info.trial.trial_seed if info is not None else int(os.environ.get("DET_TRIAL_SEED", "0"))
    torch.manual_seed(seed)
    model = network(hparams["hidden"], dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=hparams["learning_rate"] / 5)
    training, validation = points(400, seed=1).tensors, points(150, seed=2).tensors
    steps = 0
    with det.core.init(distributed=peers()) as core_context:
        workers = core_context.distributed
        if info is not None and info.latest_checkpoint is not None:
            with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                state = torch.load(path / f"rank-{workers.rank}.pt", weights_only=True)
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])
                steps = int(state["steps"])
        while steps < hparams["batches"]:
            # what a batch holds follows from its number, so a resumed run needs no memory of what it has seen
            draw = torch.Generator().manual_seed(seed * 1_000_003 + steps)
            rows = torch.randint(400, (hparams["global_batch_size"],), generator=draw)[workers.rank :: workers.size]
            model.train()
            loss = nn.functional.cross_entropy(model(training[0][rows]), training[1][rows])
            optimizer.zero_grad()
            loss.backward()
            average(model, workers)
            optimizer.step()
            steps += 1
            # not asked after the last step: what is finished need not be left
            leaving = steps < hparams["batches"] and core_context.preempt.should_preempt()
            last = steps == hparams["batches"]
            if steps % 5 == 0 or last:
                losses = workers.gather(loss.item())
                if losses is not None:
                    core_context.train.report_training_metrics(steps, {"loss": sum(losses) / len(losses)})
            if (steps % 10 == 0 or last) and workers.rank == 0:
                core_context.train.report_validation_metrics(steps, {"validation_loss": evaluate(model, validation)})
            if leaving or last or steps % 20 == 0:
                # every worker its own file, since batch norm counts apart
                with core_context.checkpoint.store_path({"steps_completed": steps}, shard=True) as (path, _):
                    save(path / f"rank-{workers.rank}.pt", model, optimizer, steps)
            if leaving:
                return
        print(f"final parameters sha256: {fingerprint(model)}", flush=True)


def average(model: nn.Module, workers: DistributedContext) -> None:
    """Sums in the order of ranks, the same under each launcher; a real script would use its framework's reduction."""
    if workers.size > 1:
        parts = workers.allgather([parameter.grad for parameter in model.parameters()])
        for parameter, gradients in zip(model.parameters(), zip(*parts, strict=True), strict=True):
            parameter.grad = torch.stack(gradients).sum(dim=0) / workers.size


def evaluate(model: nn.Module, data: tuple[torch.Tensor, ...]) -> float:
    """Loss over all of ``data``."""
    model.eval()
    with torch.no_grad():
        return nn.functional.cross_entropy(model(data[0]), data[1]).item()


def save(path: pathlib.Path, model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Everything the loop needs to go on."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, path)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    main()
