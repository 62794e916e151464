"""The examples of docstrings."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    ["composition", "launcher_settings", "slurm_options", "composer.secrets", "override_grammar", "task.run_job"],
)
def test_examples_of_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"determined_workflows.hydra.{name}"))
    assert found.attempted
    assert not found.failed
