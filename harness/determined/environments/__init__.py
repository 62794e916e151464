"""Python environments made from a list of requirements, one per hash of it; needs no cluster and only Python itself."""

from determined.environments.build import RESULT, VENV, BuildFailed, Result, build, read_result
from determined.environments.inputs import Inputs, Requirement, read_inputs, read_packages, requirements

__all__ = [
    "RESULT",
    "VENV",
    "BuildFailed",
    "Inputs",
    "Requirement",
    "Result",
    "build",
    "read_inputs",
    "read_packages",
    "read_result",
    "requirements",
]
