"""What is wrong with a composition, in sentences with a place and advice."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

CLOSE = 0.6
_KEY = re.compile(r"Key '([^']*)' not in '([^']*)'")
_DETAIL = re.compile(r"\n\s+(full_key|reference_type|object_type)(=|: ).*")
_FULL_KEY = re.compile(r"\n\s+full_key: (\S+)")
_IN_FILE = re.compile(r"In '([^']+)':")
_OVERRIDE = re.compile(r"Error merging override (.*)|Could not override '.*'\.\nTo append to your config use \+(.*)")


@dataclass(frozen=True)
class Problem:
    """One error or warning. ``override`` is the override that causes it, if one does."""

    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    override: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Invalid(Exception):
    """The application cannot be composed."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems)
        self.problems = problems


At = tuple[str | None, int | None, int | None]
NOWHERE: At = (None, None, None)
Place = Callable[[str, str], At]
"""Returns file, line and column of a key of a configuration: ``place("experiment/a", "trainer.lr")``."""


def of_exception(error: BaseException, overrides: Sequence[str], place: Place) -> Problem:
    """Returns an exception of Hydra or OmegaConf as a problem."""
    text = str(error)
    chain = list(_chain(error))
    missing = next((each for each in chain if getattr(each, "missing_cfg_file", None)), None)
    if missing is not None:
        return _missing_config(missing, overrides, place)
    if "directory not found" in text:
        folder = re.search(r"config directory '(.*)' exists", text)
        where = folder[1] if folder else "of @hydra.main"
        return Problem(f"the config folder {where} does not exist", hint="see config_path of @hydra.main")
    cause = next((each for each in reversed(chain) if getattr(each, "full_key", None) is not None), chain[-1])
    merged = next((found for each in chain if (found := _OVERRIDE.match(str(each)))), None)
    override = (merged[1] or merged[2]) if merged else None
    full_key = str(getattr(cause, "full_key", None) or _first(_FULL_KEY, f"{text}\n{cause}") or "")
    inside = _IN_FILE.match(text)
    file, line, column = place(inside[1], full_key) if inside else NOWHERE
    unknown = _KEY.search(f"{text}\n{cause}")
    if unknown:
        message = f'unknown key "{full_key or unknown[1]}": "{unknown[1]}" is not in {unknown[2]}'
        hint = _nearest(unknown[1], cause)
        if hint is None and override:
            hint = f"a key that the configuration lacks is added with +{override.lstrip('+')}"
        return Problem(message, hint, file, line, column, override)
    message = _DETAIL.sub("", str(cause) if full_key else text).strip()
    if full_key:
        message = f"{full_key}: {message}"
    return Problem(message, None, file, line, column, override)


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


def _nearest(key: str, cause: BaseException) -> str | None:
    parent = getattr(cause, "parent_node", None)
    try:
        known = [str(each) for each in parent] if parent is not None else []
    except Exception:  # a missing or empty node has no keys
        known = []
    near = difflib.get_close_matches(key, known, n=1, cutoff=CLOSE)
    if near:
        return f'did you mean "{near[0]}"?'
    return f"keys: {', '.join(sorted(known))}" if known else None


def _missing_config(error: Any, overrides: Sequence[str], place: Place) -> Problem:  # noqa: ANN401  # Hydra's exception
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    options = list(error.options or ())
    override = next((each for each in overrides if _names(each, group, choice)), None)
    file, line, column = _defaults_entry(error, overrides, f"{group}={choice}", place) if override is None else NOWHERE
    if not group:
        inside = _IN_FILE.match(str(error))
        if inside is None:
            return Problem(f'there is no configuration "{choice}"', "see config_name of @hydra.main")
        hint = "it is in a defaults list; a schema is stored by the script, or by a module that it imports"
        return Problem(f'there is no configuration "{choice}"', hint, place(inside[1], "defaults")[0])
    if not options:
        return Problem(f'there is no group "{group}"', None, file, line, column, override)
    near = difflib.get_close_matches(choice, options, n=1, cutoff=CLOSE)
    hint = f"choices of {group}: {', '.join(options)}"
    if near:
        hint = f'did you mean "{near[0]}"? {hint}'
    return Problem(f'the group "{group}" has no choice "{choice}"', hint, file, line, column, override)


def _defaults_entry(error: object, overrides: Sequence[str], entry: str, place: Place) -> At:
    """Finds the entry of a defaults list: Hydra names the primary configuration even if an experiment overrides it."""
    inside = _IN_FILE.match(str(error))
    chosen = [each.lstrip("+").replace("=", "/", 1) for each in overrides if not each.startswith("~")]
    names = [*chosen, *([inside[1]] if inside else [])]
    found = (at for name in names if (at := place(name, f"defaults:{entry}"))[1])
    return next(found, NOWHERE)


def _names(override: str, group: str, choice: str) -> bool:
    key, _, value = override.lstrip("+~").partition("=")
    return key.partition("@")[0] == group and choice in value.strip("[]'\"").split(",")
