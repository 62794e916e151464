"""The examples in the docstrings of ``determined_workflows.hydra``."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    ["composition", "launcher_settings", "slurm_options", "composer.secrets", "override_grammar", "task.run_job"],
)
def test_the_docstring_examples_of_hydra_modules_are_correct(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"determined_workflows.hydra.{name}"))
    assert results.attempted
    assert not results.failed
