"""Delays the import of torch's compiler until it is used. Python imports this module if the folder is on its path.

The first optimizer of a process imports the compiler only to disable it, a group of processes only to clear its caches,
DistributedDataParallel only to read one of its settings, ``use_deterministic_algorithms`` only to set one, and an engine
of deepspeed only to decorate an optimizer that the tests do not use. That takes one or two seconds at each start of a
training process, and the tests start hundreds. These modules answer such calls themselves; every other attribute loads
the compiler.
"""

import importlib
import importlib.machinery
import sys
from types import ModuleType

COMPILER = "torch._dynamo"


def disable(fn=None, *_, **__):
    return (lambda fn: fn) if fn is None else fn


def is_compiling():
    import torch

    return torch.compiler.is_compiling()


DECORATED = "deepspeed.runtime.zero.muon.original_muon"
"""A module whose functions are compiled when they are called, not when they are decorated."""
ANSWERS = {
    COMPILER: {"disable": disable, "graph_break": lambda: None},
    f"{COMPILER}.external_utils": {"is_compiling": is_compiling},
    f"{COMPILER}.trace_rules": {"clear_lru_cache": lambda: None},
    f"{COMPILER}.utils": {"get_optimize_ddp_mode": lambda: "ddp_optimizer"},
}
"""What the compiler and its parts answer before they are loaded, as they do when nothing is being compiled."""
BACKEND = "torch._inductor"
SETTINGS = {f"{BACKEND}.config", f"{BACKEND}.custom_graph_pass"}
"""Parts of the compiler's backend that do not need the rest of it."""


class Idle(ModuleType):
    """The compiler or a part of it before it is loaded."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        part = f"{self.__name__}.{name}"
        if part in ANSWERS and is_idle():
            return importlib.import_module(part)
        wake()
        return getattr(importlib.import_module(self.__name__), name)


class Sleeper:
    """A loader that delays the execution of the module."""

    def __init__(self, loader):
        self.load = loader.exec_module

    def create_module(self, spec):
        return Idle(spec.name)

    def exec_module(self, module):
        """Only adds the answers: ``wake`` executes the module."""
        vars(module).update(ANSWERS[module.__name__])


class IdleBackend(ModuleType):
    """The package of the backend before it is executed; the import system finds its settings."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        wake_backend()
        return getattr(self, name)


class BackendLoader:
    """A loader that delays the execution of the backend's package."""

    def __init__(self, loader):
        self.load = loader.exec_module

    def create_module(self, spec):
        return IdleBackend(spec.name)

    def exec_module(self, module):
        """Does nothing: ``wake_backend`` executes the package."""


class Decorated:
    """A loader that executes the module with a ``torch.compile`` that compiles at the first call."""

    def __init__(self, loader):
        self.load, self.create_module = loader.exec_module, loader.create_module

    def exec_module(self, module):
        import torch

        compile_now = torch.compile
        torch.compile = lambda *args, **options: Delayed(compile_now, args, options)
        try:
            self.load(module)
        finally:
            torch.compile = compile_now


class Delayed:
    """A decorator, and the function that it decorates."""

    def __init__(self, compile_now, args, options):
        self.compile_now, self.args, self.options, self.function = compile_now, args, options, None

    def __call__(self, *args, **options):
        if not self.args:
            return Delayed(self.compile_now, args, self.options)
        self.function = self.function or self.compile_now(*self.args, **self.options)
        return self.function(*args, **options)


class Finder:
    """The first entry of ``sys.meta_path``."""

    def find_spec(self, name, path=None, target=None):
        if name == BACKEND:
            return delayed(importlib.machinery.PathFinder.find_spec(name, path), BackendLoader)
        if name.startswith(f"{BACKEND}.") and name not in SETTINGS:
            wake_backend()
        if name == DECORATED and is_idle():
            return delayed(importlib.machinery.PathFinder.find_spec(name, path), Decorated)
        if name not in ANSWERS or not (name == COMPILER or is_idle()):
            if name.startswith(f"{COMPILER}."):
                wake()
            return None
        return delayed(importlib.machinery.PathFinder.find_spec(name, path), Sleeper)


def delayed(spec, loader):
    if spec is not None:
        spec.loader = loader(spec.loader)
    return spec


def is_idle():
    return type(sys.modules.get(COMPILER)) is Idle


def wake():
    """Loads the compiler. Its module object stays the same; parts of it are imported again."""
    if not is_idle():
        return
    module = sys.modules[COMPILER]
    module.__class__ = ModuleType
    for name in ANSWERS[COMPILER]:
        delattr(module, name)
    for name in ANSWERS:
        if name != COMPILER and sys.modules.pop(name, None) is not None:
            vars(module).pop(name.rpartition(".")[2], None)
    module.__spec__.loader.load(module)


def wake_backend():
    module = sys.modules.get(BACKEND)
    if type(module) is IdleBackend:
        module.__class__ = ModuleType
        module.__spec__.loader.load(module)


sys.meta_path.insert(0, Finder())
