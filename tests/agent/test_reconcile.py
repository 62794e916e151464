"""Steps of ``reconcile``: a table of desired and known states, and properties that hold for all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.link.messages import ContainerSpec, DesiredContainer, DesiredState
from determined_agent.reconcile import Forget, Known, MarkTerminated, Start, Step, Stop, reconcile

SPEC = ContainerSpec(task_id="t", slots=[], environment={}, entrypoint="true")
RUNS, STOPPING = Known(), Known(is_stopping=True)
ENDED, DONE = Known(is_ended=True), Known(is_ended=True, is_output_done=True)


def make_container(state: str, name: str = "c") -> DesiredContainer:
    spec = SPEC if state == "running" else None
    return DesiredContainer.model_validate(
        {"container_id": name, "allocation_id": "a", "state": state, "spec": spec and spec.model_dump()}
    )


def make_desired(*containers: DesiredContainer, epoch: int = 1) -> DesiredState:
    return DesiredState(master_epoch=epoch, sequence=1, containers=list(containers))


RUNNING, STOPPED = make_container("running"), make_container("stopped")


@pytest.mark.parametrize(
    ("container", "known", "steps"),
    [
        (RUNNING, None, (Start(RUNNING),)),
        (RUNNING, RUNS, ()),
        (RUNNING, STOPPING, ()),
        (RUNNING, ENDED, ()),
        (RUNNING, DONE, ()),
        (STOPPED, None, (MarkTerminated(STOPPED),)),
        (STOPPED, RUNS, (Stop("c"),)),
        (STOPPED, STOPPING, ()),
        (STOPPED, ENDED, ()),
        (STOPPED, DONE, ()),
        (None, RUNS, (Stop("c"),)),
        (None, STOPPING, ()),
        (None, ENDED, ()),
        (None, DONE, (Forget("c"),)),
    ],
)
def test_reconcile_returns_the_steps_of_each_pair_of_desired_and_known_state(
    container: DesiredContainer | None, known: Known | None, steps: tuple[Step, ...]
) -> None:
    desired = make_desired(*([container] if container else []))
    assert reconcile(desired, {"c": known} if known else {}, newest_epoch=1) == steps


names = st.sampled_from("abcdef")
desired_list = st.dictionaries(names, st.sampled_from(["running", "stopped"])).map(
    lambda states: make_desired(*(make_container(state, name) for name, state in states.items()), epoch=3)
)
reports = st.dictionaries(
    names,
    st.builds(Known, is_ended=st.booleans(), is_stopping=st.booleans(), is_output_done=st.booleans()).map(
        lambda known: known if known.is_ended else replace(known, is_output_done=False)
    ),
)


def apply(steps: tuple[Step, ...], known: dict[str, Known]) -> dict[str, Known]:
    after = dict(known)
    for step in steps:
        match step:
            case Start(desired):
                after[desired.container_id] = RUNS
            case Stop(name):
                after[name] = replace(after[name], is_stopping=True)
            case MarkTerminated(desired):
                after[desired.container_id] = DONE
            case Forget(name):
                del after[name]
    return after


@given(desired=desired_list, known=reports)
def test_applying_the_steps_of_reconcile_leaves_no_further_step(desired: DesiredState, known: dict[str, Known]) -> None:
    after = apply(reconcile(desired, known, newest_epoch=3), known)
    assert reconcile(desired, after, newest_epoch=3) == ()


@given(desired=desired_list, known=reports)
def test_reconcile_starts_no_known_container(desired: DesiredState, known: dict[str, Known]) -> None:
    steps = reconcile(desired, known, newest_epoch=3)
    started = [step.desired.container_id for step in steps if isinstance(step, Start)]
    assert not set(started) & set(known)
    assert len(started) == len(set(started))


@given(desired=desired_list, known=reports, newer=st.integers(4, 9))
def test_the_desired_state_of_an_older_master_gives_no_steps(
    desired: DesiredState, known: dict[str, Known], newer: int
) -> None:
    assert reconcile(desired, known, newest_epoch=newer) == ()


@given(history=st.lists(desired_list, min_size=1, max_size=8), known=reports, data=st.data())
def test_lost_or_repeated_messages_never_start_a_desired_container_twice(
    history: list[DesiredState], known: dict[str, Known], data: st.DataObject
) -> None:
    started: dict[str, int] = {}
    for desired in history:
        steps = reconcile(desired, known, newest_epoch=3)
        for step in steps:
            if isinstance(step, Forget):
                started.pop(step.container_id, None)
            if isinstance(step, Start):
                started[step.desired.container_id] = started.get(step.desired.container_id, 0) + 1
        known = apply(steps, known)
        for name in list(known):
            if data.draw(st.booleans()):
                known[name] = DONE
    assert all(count == 1 for count in started.values())
