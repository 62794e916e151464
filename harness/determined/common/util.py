"""Functions that scripts import from ``determined.common.util``."""

import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from determined._not_included import without_attribute

__all__ = [
    "chunks",
    "preserve_random_state",
    "safe_load_yaml_with_exceptions",
    "sizeof_fmt",
    "strtobool",
    "wait_for",
    "yaml_safe_dump",
    "yaml_safe_load",
]

T = TypeVar("T")
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def chunks(lst: Sequence[T], chunk_size: int) -> Iterator[Sequence[T]]:
    """Yields the parts of a sequence.

    Args:
        lst: a list or a text.
        chunk_size: number of items in each part; the last one may have fewer.

    Example:
        >>> list(chunks([1, 2, 3], 2))
        [[1, 2], [3]]
    """
    for start in range(0, len(lst), chunk_size):
        yield lst[start : start + chunk_size]


def sizeof_fmt(val: float) -> str:
    """Returns a number of bytes for people.

    Args:
        val: number of bytes.

    Example:
        >>> sizeof_fmt(1536)
        '1.5KB'
    """
    unit = 0
    while abs(val) >= 1024 and unit < len(_UNITS) - 1:
        val, unit = val / 1024, unit + 1
    return f"{val:.1f}{_UNITS[unit]}"


def strtobool(val: str) -> bool:
    """Returns the truth value of a text.

    Args:
        val: ``y``, ``yes``, ``t``, ``true``, ``on`` or ``1``, or their opposites, in any case.

    Raises:
        ValueError: the text is none of these.

    Example:
        >>> strtobool("Yes"), strtobool("off")
        (True, False)
    """
    word = val.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return True
    if word in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"invalid truth value: {val!r}")


def wait_for(predicate: Callable[[], tuple[bool, T]], timeout: float = 60, interval: float = 0.1) -> T:
    """Returns the value of ``predicate`` once its first part is True.

    Args:
        predicate: returns whether to stop, and the value.
        timeout: seconds after which it gives up.
        interval: seconds between two calls.

    Raises:
        TimeoutError: the time is over.

    Example:
        >>> wait_for(lambda: (True, "ready"))
        'ready'
    """
    end = time.monotonic() + timeout
    while True:
        is_done, value = predicate()
        if is_done:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"timed out after {timeout} s")
        time.sleep(interval)


def preserve_random_state(fn: Callable[..., T]) -> Callable[..., T]:
    """Makes a function that leaves the random streams of Python and NumPy as they were.

    Args:
        fn: the function.

    Example:
        >>> @preserve_random_state
        ... def draw():
        ...     return random.random()
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **options: Any) -> T:  # noqa: ANN401  # those of the function
        import numpy as np

        streams, of_numpy = random.getstate(), np.random.get_state()
        try:
            return fn(*args, **options)
        finally:
            random.setstate(streams)
            np.random.set_state(of_numpy)

    return wrapped


def yaml_safe_load(f: Any) -> Any:  # noqa: ANN401  # a text or a file; a value of a YAML document
    """Returns the value of a YAML document.

    Args:
        f: its text, or an open file.

    Example:
        >>> yaml_safe_load("a: 1")
        {'a': 1}
    """
    import yaml

    return yaml.safe_load(f)


def yaml_safe_dump(data: Any, stream: Any = None, default_flow_style: bool | None = None) -> Any:  # noqa: ANN401
    """Writes a value as YAML.

    Args:
        data: the value.
        stream: an open file; None to return the text.
        default_flow_style: True for brackets and braces, False for lines, None for braces around what is short.

    Example:
        >>> yaml_safe_dump({"a": 1}, default_flow_style=False)
        'a: 1\\n'
    """
    import yaml

    return yaml.safe_dump(data, stream, default_flow_style=default_flow_style, sort_keys=False)


def safe_load_yaml_with_exceptions(yaml_file: Any) -> Any:  # noqa: ANN401  # as yaml_safe_load
    """Returns the value of a YAML document; an error names the file.

    Args:
        yaml_file: an open file, or a text.

    Raises:
        ValueError: it is no YAML.

    Example:
        >>> safe_load_yaml_with_exceptions("a: [1, 2]")
        {'a': [1, 2]}
    """
    import yaml

    try:
        return yaml.safe_load(yaml_file)
    except yaml.YAMLError as error:
        name = Path(getattr(yaml_file, "name", "the text"))
        raise ValueError(f"{name} is no valid YAML: {error}") from error


def __getattr__(name: str) -> Any:  # noqa: ANN401  # it only raises
    raise without_attribute("common.util", name)
