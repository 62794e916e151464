"""The protocol of search methods, and their state between events.

A method is pure: it is rebuilt from its snapshot, told an event, asked for actions. Actions and the position after the
event are stored in one transaction by whoever calls it. A method never touches the database, the clock, or a random
source other than the generator in its state, whose state is part of the snapshot: a search that was interrupted at any
point goes on as it would have.
"""

import random
import uuid
from dataclasses import dataclass, field
from typing import Any, Protocol

from determined_master.searcher.actions import Action, Create, Event

TRIALS_A_LOT = 128
"""Trials that a method creates at one event. One that wants more says so by ``CreateMore``."""


class SearchMethod(Protocol):
    """A search method: ``initial`` is called once; then ``on_event`` for each event in order. ``progress`` is in [0,
    1]; it is told the progress of all trials that have not ended, added up."""

    decides_on_validations: bool
    """False if no action follows from a ``TrialValidated``, which then only changes the progress."""

    def initial(self) -> list[Action]: ...

    def on_event(self, event: Event) -> list[Action]: ...

    def progress(self, live_progress: float) -> float: ...

    def snapshot(self) -> dict[str, Any]: ...


@dataclass
class Randomness:
    """A Mersenne twister seeded by the experiment; its state can be stored as JSON."""

    rng: random.Random = field(default_factory=random.Random)

    @classmethod
    def seeded(cls, seed: int) -> "Randomness":
        return cls(random.Random(seed))

    @classmethod
    def restored(cls, state: list[Any]) -> "Randomness":
        rng = random.Random()
        rng.setstate((state[0], tuple(state[1]), state[2]))
        return cls(rng)

    def state(self) -> list[Any]:
        version, words, gauss = self.rng.getstate()
        return [version, list(words), gauss]

    def create(self, hparams: dict[str, Any], reason: str = "") -> Create:
        request_id = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        return Create(request_id=request_id, hparams=hparams, seed=self.rng.getrandbits(31), reason=reason)
