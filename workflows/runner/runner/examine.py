"""Examiner and what parsers use, under the name of runner."""

from determined_workflows.runner.examine import Examiner, Experiment, latest_log, load_params, match_output

__all__ = ["Examiner", "Experiment", "latest_log", "load_params", "match_output"]
