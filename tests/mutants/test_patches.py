"""Checks of the mutation patches: each applies to the tree and names existing tests."""

import pytest
from tests.mutants.run import ROOT, Mutant, all_mutants, apply

MUTANTS = all_mutants()


def test_there_are_at_least_fourteen_mutation_patches():
    assert len(MUTANTS) >= 14


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_patch_applies_and_names_existing_tests(mutant: Mutant):
    assert apply(mutant, ROOT, check=True) == ""
    for test in mutant.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).is_file(), f"{path} is gone"
        if function:
            assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), f"{test} is gone"
