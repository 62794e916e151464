"""The PyTorch trial API: ``PyTorchTrial``, its context, data loader, callbacks, reducers and ``Trainer``."""

from determined._units import Batch, Epoch, Record, TrainUnit
from determined.pytorch import deepspeed, samplers
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._data import DataLoader
from determined.pytorch._init import init
from determined.pytorch._load import load_trial_from_checkpoint_path
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._reducer import MetricReducer, Reducer, SimpleMetricReducer
from determined.pytorch._trainer import Trainer
from determined.pytorch._trial import PyTorchTrial, TorchData

__all__ = [
    "Batch",
    "DataLoader",
    "Epoch",
    "LRScheduler",
    "MetricReducer",
    "PyTorchCallback",
    "PyTorchTrial",
    "PyTorchTrialContext",
    "Record",
    "Reducer",
    "SimpleMetricReducer",
    "TorchData",
    "TrainUnit",
    "Trainer",
    "deepspeed",
    "init",
    "load_trial_from_checkpoint_path",
    "samplers",
]
