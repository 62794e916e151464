"""Compares desired and known containers and returns steps. Pure and level-triggered: a lost step is found again."""

from collections.abc import Mapping
from dataclasses import dataclass

from determined.link.messages import DesiredContainer, DesiredState


@dataclass(frozen=True)
class Known:
    """The agent's knowledge about one container."""

    is_ended: bool = False
    is_stopping: bool = False
    is_output_done: bool = False


@dataclass(frozen=True)
class Start:
    desired: DesiredContainer


@dataclass(frozen=True)
class Stop:
    container_id: str


@dataclass(frozen=True)
class MarkTerminated:
    """Reports a container as ended that the master wants stopped and that never started here."""

    desired: DesiredContainer


@dataclass(frozen=True)
class Forget:
    container_id: str


Step = Start | Stop | MarkTerminated | Forget


def reconcile(desired: DesiredState, known: Mapping[str, Known], *, newest_epoch: int) -> tuple[Step, ...]:
    """Returns the steps towards the desired state; none under a master with an older epoch than the newest seen."""
    if desired.master_epoch < newest_epoch:
        return ()
    steps: list[Step] = []
    desired_by_id = {container.container_id: container for container in desired.containers}
    for container_id, container in desired_by_id.items():
        here = known.get(container_id)
        if here is None:
            if container.state == "stopped":
                steps.append(MarkTerminated(container))
            elif container.spec is not None:
                steps.append(Start(container))
        elif container.state == "stopped" and not here.is_ended and not here.is_stopping:
            steps.append(Stop(container_id))
    for container_id, here in known.items():
        if container_id in desired_by_id:
            continue
        if not here.is_ended:
            if not here.is_stopping:
                steps.append(Stop(container_id))
        elif here.is_output_done:
            steps.append(Forget(container_id))
    return tuple(steps)
