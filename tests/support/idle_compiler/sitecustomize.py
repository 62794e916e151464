"""Found by every Python that has this folder on its path: torch's compiler is loaded when it is wanted.

The first optimizer of a process loads it, only to tell it to keep away: a second or two of a training process's start
that the tests would pay hundreds of times. Here that is answered without it; whatever else is asked of it loads it.
"""

import importlib.machinery
import sys
from types import ModuleType

COMPILER = "torch._dynamo"


class Idle(ModuleType):
    """The compiler before it is wanted; the same object is the real module afterwards."""

    def disable(self, fn=None, *_, **__):
        return (lambda fn: fn) if fn is None else fn

    def graph_break(self, *_, **__):
        """Nothing is being compiled."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        wake(self)
        return getattr(self, name)


class Sleeper:
    """A loader that puts off what the real one does."""

    def __init__(self, loader):
        self.load = loader.exec_module

    def create_module(self, spec):
        return Idle(spec.name)

    def exec_module(self, module):
        """Until ``wake``."""


class Finder:
    """First of all finders."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith(f"{COMPILER}."):
            wake(sys.modules[COMPILER])
        if name != COMPILER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = Sleeper(spec.loader)
        return spec


def wake(module):
    if type(module) is Idle:
        module.__class__ = ModuleType
        module.__spec__.loader.load(module)


sys.meta_path.insert(0, Finder())
