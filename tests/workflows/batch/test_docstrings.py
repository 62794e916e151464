"""The examples in the docstrings of ``determined_workflows.batch`` are true."""

import doctest
import importlib

import pytest

NAMES = ("command_file", "control", "durations", "local_run", "on_cluster", "shell_words", "status", "sweep")


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_a_module_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"determined_workflows.batch.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
