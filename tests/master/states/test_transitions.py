"""Tables of transitions: every state has a row, final states have empty ones, all are reachable, and the documentation
agrees."""

import re
from pathlib import Path

import pytest

from determined.states import (
    AllocationState,
    CheckpointState,
    ContainerState,
    ExperimentState,
    InstanceState,
    TaskState,
    TrialState,
)
from determined_master.allocations import states as allocations
from determined_master.checkpoints import states as checkpoints
from determined_master.experiments import states as experiments
from determined_master.providers import states as providers
from determined_master.tasks import states as tasks
from determined_master.trials import states as trials

TABLES = [
    pytest.param(experiments.ALLOWED, experiments.FIRST, ExperimentState, "Experiment", id="experiment"),
    pytest.param(trials.ALLOWED, trials.FIRST, TrialState, "Trial", id="trial"),
    pytest.param(tasks.ALLOWED, tasks.FIRST, TaskState, "Task", id="task"),
    pytest.param(allocations.ALLOWED, allocations.FIRST, AllocationState, "Allocation", id="allocation"),
    pytest.param(
        allocations.CONTAINER_ALLOWED, allocations.CONTAINER_FIRST, ContainerState, "Container", id="container"
    ),
    pytest.param(providers.ALLOWED, providers.FIRST, InstanceState, "Instance", id="instance"),
    pytest.param(checkpoints.ALLOWED, checkpoints.FIRST, CheckpointState, "Checkpoint", id="checkpoint"),
]
DOC = Path(__file__).parents[3] / "docs" / "architecture" / "states.md"


@pytest.mark.parametrize(("allowed", "first", "kind", "title"), TABLES)
def test_every_state_has_a_row(allowed, first, kind, title):
    assert set(allowed) == set(kind)


@pytest.mark.parametrize(("allowed", "first", "kind", "title"), TABLES)
def test_a_final_state_has_no_transition(allowed, first, kind, title):
    for state in kind:
        assert (allowed[state] == frozenset()) == state.is_final, state


@pytest.mark.parametrize(("allowed", "first", "kind", "title"), TABLES)
def test_every_state_is_reachable_from_the_first(allowed, first, kind, title):
    reached, edge = {first}, {first}
    while edge:
        edge = {to for state in edge for to in allowed[state]} - reached
        reached |= edge
    assert reached == set(kind)


@pytest.mark.parametrize(("allowed", "first", "kind", "title"), TABLES)
def test_the_documentation_has_the_same_transitions(allowed, first, kind, title):
    section = re.split(r"^## ", DOC.read_text(), flags=re.M)
    text = next(part for part in section if part.startswith(title))
    documented = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0] in kind.__members__:
            documented[kind[cells[0]]] = frozenset(kind[word] for word in cells[1].split(", ") if word)
    assert documented == dict(allowed)
