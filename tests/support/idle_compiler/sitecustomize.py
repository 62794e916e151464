"""Delays the import of parts of torch until they are used. Python imports this module if the folder is on its path.

The first optimizer of a process imports the compiler only to disable it, and ``import torch`` imports the exporter and
the shape functions of operators, which only the compiler and tensors without data use. Together that takes one or two
seconds at each start of a training process, and the tests start hundreds. This module answers the compiler's
``disable`` itself; every other attribute of these modules loads them. Tensors on the device ``meta`` do not: a process
that uses them imports ``torch._decomp.decompositions`` first.
"""

import importlib.machinery
import sys
from types import ModuleType

COMPILER = "torch._dynamo"
DELAYED = (COMPILER, "torch.export", "torch._meta_registrations")
SHAPE_FUNCTIONS = "torch._meta_registrations"
"""Its execution registers them, so it is executed before whatever uses them."""
USES_SHAPES = ("torch._subclasses.fake_impls", "torch._functorch.aot_autograd", "torch._decomp.decompositions")


class Idle(ModuleType):
    """A part before it is loaded. The same object becomes the real module."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        wake(self)
        return getattr(self, name)


class IdleCompiler(Idle):
    """The compiler: what an optimizer calls at its creation does nothing."""

    def disable(self, fn=None, *_, **__):
        return (lambda fn: fn) if fn is None else fn

    def graph_break(self, *_, **__):
        """Does nothing, since nothing is being compiled."""


class Sleeper:
    """A loader that delays the execution of the module."""

    def __init__(self, loader):
        self.load = loader.exec_module

    def create_module(self, spec):
        return (IdleCompiler if spec.name == COMPILER else Idle)(spec.name)

    def exec_module(self, module):
        """Does nothing: ``wake`` executes the module."""


class Finder:
    """The first entry of ``sys.meta_path``."""

    def find_spec(self, name, path=None, target=None):
        for delayed in DELAYED:
            if name.startswith(f"{delayed}.") and delayed in sys.modules:
                wake(sys.modules[delayed])
        if name in USES_SHAPES and SHAPE_FUNCTIONS in sys.modules:
            wake(sys.modules[SHAPE_FUNCTIONS])
        if name not in DELAYED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = Sleeper(spec.loader)
        return spec


def wake(module):
    if isinstance(module, Idle):
        module.__class__ = ModuleType
        if module.__name__ == COMPILER:
            wake(sys.modules[SHAPE_FUNCTIONS])
        module.__spec__.loader.load(module)


sys.meta_path.insert(0, Finder())
