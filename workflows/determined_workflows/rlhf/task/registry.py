"""Registries of what experiments refer to by a name: datasets, dataloaders, models, interfaces, backends, experiments.

The registries are here, apart from the modules that fill them, so that an experiment can be checked without torch.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class UnknownName(KeyError):
    """A name that nothing was registered under. Its text is a sentence with the nearest name, or else all names."""

    def __str__(self) -> str:
        return str(self.args[0])


class Registry(Generic[Made]):
    """Makers of one kind of thing by their names.

    Example:
        >>> DATASETS.register("prompts", PromptDataset)
        >>> DATASETS.make("prompts", util, max_length=128)
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.makers: dict[str, Callable[..., Made]] = {}

    def register(self, name: str, maker: Callable[..., Made]) -> None:
        """Adds ``maker`` (a class, function or partial). Raises ValueError if another maker has the name."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a {self.kind} is registered under a text, not under {name!r}")
        if not callable(maker):
            raise ValueError(
                f"the {self.kind} {name!r} cannot be registered: {maker!r} is neither a class nor a function"
            )
        known = self.makers.get(name)
        if known is not None and not _is_same(known, maker):
            raise ValueError(
                f"two {self.kind}s are registered under {name!r}: {_place(known)} and {_place(maker)}; rename one"
            )
        self.makers[name] = maker

    def get(self, name: str) -> Callable[..., Made]:
        """Returns what was registered under ``name``. Raises UnknownName with the nearest name, or all names."""
        maker = self.makers.get(name)
        if maker is None:
            raise UnknownName(unknown_name(self.kind, name, self.makers, f"add it by register_{self.kind}"))
        return maker

    def make(self, name: str, *args: object, **kwargs: object) -> Made:
        """Calls the maker that was registered under ``name``."""
        return self.get(name)(*args, **kwargs)

    def __contains__(self, name: object) -> bool:
        return name in self.makers

    def names(self) -> list[str]:
        """Returns the registered names in alphabetical order."""
        return sorted(self.makers)


def unknown_name(kind: str, name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Returns the sentence for a name that is not known: the nearest name, or all of them, and what else to do."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name)[:100], names, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif names:
        hint = f"known: {', '.join(names)}"
    else:
        hint = "none is known"
    return f"there is no {kind} {name!r}: {hint}" + (f"; {otherwise}" if otherwise else "")


def _is_same(known: object, maker: object) -> bool:
    """Returns True for one maker, and for classes and functions of a module that was imported twice, as by a reload.

    Two partials differ: what they bind cannot always be compared.
    """
    place = _place(maker)
    return known is maker or (place == _place(known) and "<locals>" not in place and "<lambda>" not in place)


def _place(maker: object) -> str:
    inner = getattr(maker, "func", maker)  # of a partial
    if inner is not maker:
        return f"partial {id(maker)} of {_place(inner)}"
    return f"{getattr(maker, '__module__', '?')}.{getattr(maker, '__qualname__', repr(maker))}"


DATASETS: Registry[object] = Registry("dataset")
DATALOADERS: Registry[object] = Registry("dataloader")
MODELS: Registry[object] = Registry("model")
INTERFACES: Registry[object] = Registry("interface")
BACKENDS: Registry[object] = Registry("backend")
