"""Says how much disk packed data and environments take: they are kept until the user removes them."""

from collections.abc import Callable, Sequence
from pathlib import Path


def announce(what: str, sizes: Sequence[int], folder: Path, say: Callable[[str], None]) -> None:
    """Says number, size and place of what is kept. ``sizes``: in bytes."""
    say(f"{what} kept for later jobs: {len(sizes)}, {size_text(sum(sizes))} in {folder}")


def size_text(size: int) -> str:
    """Returns a number of bytes for people.

    >>> size_text(1_250_000), size_text(2_300_000_000)
    ('1.2 MB', '2.3 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
