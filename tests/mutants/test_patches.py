"""Patches do not rot: each still applies to the tree and names tests that are there."""

import pytest
from tests.mutants.run import ROOT, Mutant, all_mutants, apply

MUTANTS = all_mutants()


def test_there_are_enough():
    assert len(MUTANTS) >= 14


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_applies_and_names_tests_that_are_there(mutant: Mutant):
    assert apply(mutant, ROOT, check=True) == ""
    for test in mutant.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).is_file(), f"{path} is gone"
        if function:
            assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), f"{test} is gone"
