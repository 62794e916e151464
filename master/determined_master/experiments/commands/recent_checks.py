"""Results of checks that wait for the creation of their experiment: clients check a configuration, then submit it."""

import time
from collections import OrderedDict
from collections.abc import Callable

from determined_master.experiments.commands.config_check import CheckedConfig

MAX_CHECKS = 4
"""Their texts and configurations are in memory, and may be a megabyte each."""
MAX_AGE_SECONDS = 30.0
"""Defaults of a configuration, such as the seed, are taken from the time of the check."""

_Key = tuple[str, bool]


class RecentChecks:
    """Keeps the newest results, each for one creation: two experiments with one text have names of their own.

    >>> checks = RecentChecks()
    >>> checks.pop("name: a", has_containers=False) is None
    True
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._results: OrderedDict[_Key, tuple[float, CheckedConfig]] = OrderedDict()

    def put(self, text: str, result: CheckedConfig, *, has_containers: bool) -> None:
        """Stores the result of a text's check; ``has_containers``: the kind of cluster for which it was checked."""
        self._results[text, has_containers] = (self._now(), result)
        self._results.move_to_end((text, has_containers))
        self._drop_oldest()

    def pop(self, text: str, *, has_containers: bool) -> CheckedConfig | None:
        """Returns the result of a text's check and forgets it; None if there is none."""
        self._drop_oldest()
        _checked_at, result = self._results.pop((text, has_containers), (0.0, None))
        return result

    def _drop_oldest(self) -> None:
        oldest = self._now() - MAX_AGE_SECONDS
        while self._results and (len(self._results) > MAX_CHECKS or next(iter(self._results.values()))[0] < oldest):
            self._results.popitem(last=False)
