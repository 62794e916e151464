"""Groups of tasks as JSON, in the ``groups`` column of an allocation."""

from collections.abc import Mapping
from typing import Any

from determined_master.scheduling.view import Constraints, TaskGroup


def to_json(group: TaskGroup) -> dict[str, Any]:
    """Returns a group as JSON.

    >>> from_json(to_json(TaskGroup("trial", slots=2))) == TaskGroup("trial", slots=2)
    True
    """
    constraints = vars(group.constraints) | {"excluded_agents": sorted(group.constraints.excluded_agents)}
    return vars(group) | {"constraints": constraints}


def from_json(values: Mapping[str, Any]) -> TaskGroup:
    constraints = dict(values["constraints"])
    excluded = frozenset(constraints.pop("excluded_agents"))
    return TaskGroup(**{**values, "constraints": Constraints(**constraints, excluded_agents=excluded)})
