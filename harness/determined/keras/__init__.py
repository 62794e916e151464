"""Keras 3 on the cluster: ``DeterminedCallback`` for scripts and ``TFKerasTrial`` for trial classes."""

from determined.keras._callback import DeterminedCallback
from determined.keras._tensorboard import TensorBoard
from determined.keras._trial import InputData, TFKerasTrial, TFKerasTrialContext

__all__ = ["DeterminedCallback", "InputData", "TFKerasTrial", "TFKerasTrialContext", "TensorBoard"]
