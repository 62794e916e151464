"""Python environments made from a list of requirements, one per hash of it; needs no cluster and only Python itself."""

from determined.environments.build import BASE_FILE, RESULT, VENV, BuildFailed, Result, build, read_result
from determined.environments.inputs import (
    Inputs,
    Requirement,
    name_of,
    read_inputs,
    read_packages,
    requirements,
    wanted_inputs,
)

__all__ = [
    "BASE_FILE",
    "RESULT",
    "VENV",
    "BuildFailed",
    "Inputs",
    "Requirement",
    "Result",
    "build",
    "name_of",
    "read_inputs",
    "read_packages",
    "read_result",
    "requirements",
    "wanted_inputs",
]
