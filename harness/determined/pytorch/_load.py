"""Loads a trial with its weights from the folder of a checkpoint."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from determined import core
from determined.errors import DeterminedError
from determined.pytorch import _saving
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._state import TrainingState
from determined.pytorch._trial import PyTorchTrial


def load_trial_from_checkpoint_path(
    path: str, torch_load_args: dict[str, Any] | None = None, trial_kwargs: dict[str, Any] | None = None
) -> PyTorchTrial:
    """Returns a trial with the weights of a checkpoint, for inference.

    Its class comes from the code in the checkpoint.

    Args:
        path: folder with the files of the checkpoint.
        torch_load_args: further arguments of ``torch.load``.
        trial_kwargs: further arguments of the trial's constructor.

    Raises:
        DeterminedError: the checkpoint is of another kind of trial.

    >>> trial = load_trial_from_checkpoint_path("checkpoints/1234")  # doctest: +SKIP
    """
    folder = Path(path)
    about = json.loads((folder / _saving.LOAD_FILE).read_text(encoding="utf-8"))
    if about.get("trial_type", PyTorchTrial.kind) != PyTorchTrial.kind:
        raise DeterminedError(
            f"the checkpoint is of a {about['trial_type']}, whose engines only a run under its own framework can make"
        )
    module, _, name = about["trial_cls_spec"].partition(":")
    code = folder / _saving.CODE_FOLDER
    before = list(sys.path)
    # an entrypoint folder/file.py:Class ran with its folder on sys.path, which its imports need here too
    sys.path[:0] = [str(code), str(code.joinpath(*module.split(".")[:-1]))]
    try:
        value: Any = importlib.import_module(module)
    finally:
        sys.path[:] = before
    for part in name.split("."):
        value = getattr(value, part)
    with core.init() as core_context:
        context = PyTorchTrialContext(core_context, hparams=about["hparams"], exp_conf=about["experiment_config"])
        trial: PyTorchTrial = value(context, **(trial_kwargs or {}))
        checkpoint = _saving.load(folder / _saving.STATE_FILE, trusted=False, **(torch_load_args or {}))
        TrainingState(context, {}, None).load_weights(checkpoint)
    return trial
