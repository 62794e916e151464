"""Compares desired with known containers and returns steps. Pure and level-triggered: a lost step is found again."""

from collections.abc import Mapping
from dataclasses import dataclass

from determined.link.messages import DesiredContainer, DesiredState


@dataclass(frozen=True)
class Known:
    """What the agent knows of one container."""

    is_ended: bool = False
    is_stopping: bool = False
    is_output_done: bool = False


@dataclass(frozen=True)
class Start:
    wish: DesiredContainer


@dataclass(frozen=True)
class Stop:
    container_id: str


@dataclass(frozen=True)
class MarkTerminated:
    """The master wishes a container stopped that never began here: say that it has ended."""

    wish: DesiredContainer


@dataclass(frozen=True)
class Forget:
    container_id: str


Step = Start | Stop | MarkTerminated | Forget


def reconcile(wish: DesiredState, known: Mapping[str, Known], *, newest_epoch: int) -> tuple[Step, ...]:
    """The steps that bring what is known closer to the wish; none under a master older than the newest seen."""
    if wish.master_epoch < newest_epoch:
        return ()
    steps: list[Step] = []
    wished = {container.container_id: container for container in wish.containers}
    for container_id, container in wished.items():
        here = known.get(container_id)
        if here is None:
            if container.state == "stopped":
                steps.append(MarkTerminated(container))
            elif container.spec is not None:
                steps.append(Start(container))
        elif container.state == "stopped" and not here.is_ended and not here.is_stopping:
            steps.append(Stop(container_id))
    for container_id, here in known.items():
        if container_id in wished:
            continue
        if not here.is_ended:
            if not here.is_stopping:
                steps.append(Stop(container_id))
        elif here.is_output_done:
            steps.append(Forget(container_id))
    return tuple(steps)
