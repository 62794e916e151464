"""The same model as a plain script over the Core API: a loop of its own, with checkpoints and preemption."""

import logging
import pathlib

import torch
from digits_data import Digits
from model_def import build_model, fingerprint
from torch import nn

import determined as det

DEFAULTS = {"global_batch_size": 64, "learning_rate": 0.05, "hidden": 128, "dropout": 0.25, "batches": 480}


def main() -> None:
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info is not None else DEFAULTS
    seed = info.trial.trial_seed if info is not None else 2022
    latest = info.latest_checkpoint if info is not None else None
    torch.manual_seed(seed)
    model = build_model(hparams["hidden"], hparams["dropout"])
    optimizer = torch.optim.SGD(model.parameters(), lr=hparams["learning_rate"], momentum=0.9)
    training, validation = Digits(2000, seed=1, augment=False), Digits(500, seed=2, augment=False)
    steps = 0
    with det.core.init() as core_context:
        if latest is not None:
            with core_context.checkpoint.restore_path(latest) as path:
                steps = load(path, model, optimizer)
        while steps < hparams["batches"]:
            # what a batch holds follows from its number, so a resumed run needs no memory of what it has seen
            draw = torch.Generator().manual_seed(seed * 1_000_003 + steps)
            rows = torch.randint(len(training), (hparams["global_batch_size"],), generator=draw).tolist()
            images = torch.stack([training[row][0] for row in rows])
            labels = torch.tensor([training[row][1] for row in rows])
            model.train()
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % 20 == 0:
                core_context.train.report_training_metrics(steps_completed=steps, metrics={"loss": loss.item()})
                core_context.train.report_progress(steps / hparams["batches"])
            if steps % 60 == 0 or steps == hparams["batches"]:
                core_context.train.report_validation_metrics(steps_completed=steps, metrics=evaluate(model, validation))
            # not asked after the last step: what is finished need not be left
            leaving = steps < hparams["batches"] and core_context.preempt.should_preempt()
            if leaving or steps % 120 == 0 or steps == hparams["batches"]:
                with core_context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
                    save(path, model, optimizer, steps)
            if leaving:
                return
        print(f"final parameters sha256: {fingerprint(model)}", flush=True)


def evaluate(model: nn.Module, data: Digits) -> dict[str, float]:
    """Loss and accuracy over all of ``data``."""
    images, labels = torch.from_numpy(data.images)[:, None], torch.from_numpy(data.labels)
    model.eval()
    with torch.no_grad():
        output = model(images)
    return {
        "validation_loss": nn.functional.cross_entropy(output, labels).item(),
        "accuracy": (output.argmax(dim=1) == labels).float().mean().item(),
    }


def save(path: pathlib.Path, model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Everything the loop needs to go on."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "steps": steps,
        "stream": torch.get_rng_state(),
    }
    torch.save(state, path / "state.pt")


def load(path: pathlib.Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The reverse of :func:`save`; the steps that were done."""
    state = torch.load(path / "state.pt", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["stream"])
    return int(state["steps"])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    main()
