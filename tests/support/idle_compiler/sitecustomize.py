"""Delays the import of torch's compiler until it is used. Python imports this module if the folder is on its path.

The first optimizer of a process imports the compiler only to disable it. That takes one or two seconds at each start of
a training process, and the tests start hundreds. This module answers that call itself; every other attribute loads the
compiler.
"""

import importlib.machinery
import sys
from types import ModuleType

COMPILER = "torch._dynamo"


class Idle(ModuleType):
    """The compiler before it is loaded. The same object becomes the real module."""

    def disable(self, fn=None, *_, **__):
        return (lambda fn: fn) if fn is None else fn

    def graph_break(self, *_, **__):
        """Does nothing, since nothing is being compiled."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        wake(self)
        return getattr(self, name)


class Sleeper:
    """A loader that delays the execution of the module."""

    def __init__(self, loader):
        self.load = loader.exec_module

    def create_module(self, spec):
        return Idle(spec.name)

    def exec_module(self, module):
        """Does nothing: ``wake`` executes the module."""


class Finder:
    """The first entry of ``sys.meta_path``."""

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
