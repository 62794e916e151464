"""The three tables: every state has a row, a final one's is empty, all are reachable, and docs/states.md says the same."""

import re
from pathlib import Path

import pytest

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.allocations import states as allocations
from determined_master.experiments import states as experiments
from determined_master.trials import states as trials

TABLES = [
    pytest.param(experiments, ExperimentState, "Experiment", id="experiment"),
    pytest.param(trials, TrialState, "Trial", id="trial"),
    pytest.param(allocations, AllocationState, "Allocation", id="allocation"),
]
DOC = Path(__file__).parents[2] / "docs" / "states.md"


@pytest.mark.parametrize(("module", "kind", "title"), TABLES)
def test_every_state_has_a_row(module, kind, title):
    assert set(module.ALLOWED) == set(kind)


@pytest.mark.parametrize(("module", "kind", "title"), TABLES)
def test_nothing_follows_a_final_state(module, kind, title):
    for state in kind:
        assert (module.ALLOWED[state] == frozenset()) == state.is_final, state


@pytest.mark.parametrize(("module", "kind", "title"), TABLES)
def test_every_state_is_reachable(module, kind, title):
    seen, edge = {module.FIRST}, {module.FIRST}
    while edge:
        edge = {to for state in edge for to in module.ALLOWED[state]} - seen
        seen |= edge
    assert seen == set(kind)


@pytest.mark.parametrize(("module", "kind", "title"), TABLES)
def test_the_document_holds_the_same_table(module, kind, title):
    section = re.split(r"^## ", DOC.read_text(), flags=re.M)
    text = next(part for part in section if part.startswith(title))
    written = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0] in kind.__members__:
            written[kind[cells[0]]] = frozenset(kind[word] for word in cells[1].split(", ") if word)
    assert written == dict(module.ALLOWED)
