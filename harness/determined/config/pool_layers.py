"""Layers of configuration below a submitted one that depend on its resource pool."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PoolLayers:
    """The defaults of each resource pool for the containers of its tasks (``task_container_defaults``).

    Attributes:
        layers: the layer of each pool by its name.
        compute: the pool of tasks with slots that name none.
        aux: the pool of tasks without slots that name none.
    """

    layers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    compute: str = ""
    aux: str = ""

    def below(self, own: Mapping[str, Any], slots: str, known: Collection[str]) -> dict[str, Any]:
        """Returns the layer below a configuration.

        Args:
            own: the submitted configuration, unchecked.
            slots: the field of ``resources`` with the number of slots.
            known: the fields that such a configuration has; others are left out.

        Returns:
            The layer of its pool; nothing for a pool that does not exist.

        Example:
            >>> pools = PoolLayers({"gpu": {"bind_mounts": []}}, compute="gpu", aux="cpu")
            >>> pools.below({"resources": {"slots": 1}}, "slots", ["bind_mounts"])
            {'bind_mounts': []}
        """
        resources = own.get("resources")
        if not isinstance(resources, Mapping):
            resources = {}
        name = resources.get("resource_pool") or (self.aux if resources.get(slots) == 0 else self.compute)
        layer = self.layers.get(name, {}) if isinstance(name, str) else {}
        return {key: value for key, value in layer.items() if key in known}
