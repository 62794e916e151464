"""Rarely used switches of the trial context."""

import logging
from typing import Any

import torch

logger = logging.getLogger(__name__)


class ExperimentalContext:
    """Rarely used switches of a trial context: ``context.experimental``."""

    def __init__(self, parent: Any) -> None:  # noqa: ANN401  # scalers of several torch versions
        self._parent = parent
        self.plain_loaders = False
        self.auto_to_device = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Allows the trial to return a torch DataLoader; a resumed epoch is then read again up to its position."""
        self.plain_loaders = True

    def disable_auto_to_device(self) -> None:
        """Leaves it to the trial to move batches to the device."""
        self.auto_to_device = False

    def use_amp(self) -> None:
        """Trains in mixed precision with one gradient scaler that the trainer handles.

        Call it in ``__init__``. ``train_batch`` and ``evaluate_batch`` run under ``torch.autocast``;
        ``context.backward`` scales the loss, ``context.step_optimizer`` unscales gradients before it clips them and
        steps through the scaler, and the scaler is updated after each batch that stepped. Its state is part of
        checkpoints. Without a GPU nothing is scaled, and autocast computes in bfloat16.

        Raises:
            RuntimeError: the trial has wrapped a scaler of its own, or it is not a PyTorchTrial.
        """
        context = self._parent
        if not hasattr(context, "_amp_scaler"):
            raise RuntimeError(
                "use_amp() supports PyTorchTrial only; set fp16 or bf16 in the configuration of DeepSpeed"
            )
        if context._amp_scaler is not None:  # noqa: SLF001  # hidden from trials, not from the trainer
            return
        if context.scalers:
            raise RuntimeError("use_amp() already has a gradient scaler: remove context.wrap_scaler()")
        if context.device.type != "cuda":
            logger.warning("use_amp() without a GPU: autocast computes in bfloat16, and gradients are not scaled")
        scaler = make_scaler(context.device)
        context.scalers.append(scaler)
        context._amp_scaler = scaler  # noqa: SLF001  # hidden from trials, not from the trainer


def make_scaler(device: torch.device) -> Any:  # noqa: ANN401  # scalers of several torch versions
    """Returns a gradient scaler; without a GPU it is disabled."""
    enabled = device.type == "cuda"
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device.type, enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)  # torch before 2.3
