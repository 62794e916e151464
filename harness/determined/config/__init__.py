"""The experiment configuration: checked with line and column, merged, and completed with defaults."""

from determined.config.checking import CheckResult, check
from determined.config.diagnostics import Diagnostic
from determined.config.experiment import ExperimentConfig

__all__ = ["CheckResult", "Diagnostic", "ExperimentConfig", "check"]
