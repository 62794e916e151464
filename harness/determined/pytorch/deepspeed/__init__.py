"""The DeepSpeed trial API: trial, context, ``init`` and ``Trainer``; deepspeed itself is imported in ``init``."""

from determined.pytorch.deepspeed._config import get_ds_config_from_hparams, overwrite_deepspeed_config
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._init import init
from determined.pytorch.deepspeed._trainer import Trainer
from determined.pytorch.deepspeed._trial import DeepSpeedTrial

__all__ = [
    "DeepSpeedTrial",
    "DeepSpeedTrialContext",
    "Trainer",
    "get_ds_config_from_hparams",
    "init",
    "overwrite_deepspeed_config",
]
