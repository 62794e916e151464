"""The experiment configuration: checked with line and column, merged, and completed with defaults."""

from determined.config.checking import Checked, check
from determined.config.diagnostics import Diagnostic
from determined.config.experiment import ExperimentConfig

__all__ = ["Checked", "Diagnostic", "ExperimentConfig", "check"]
