"""Parsers of numbers on the command line."""


def count(text: str) -> int:
    """Parses a whole number that is not negative. Raises ValueError.

    >>> count("3")
    3
    """
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def slot_limit(text: str) -> int | None:
    """Parses a number of slots; ``none`` means no limit. Raises ValueError.

    >>> slot_limit("none") is None
    True
    """
    return None if text.lower() == "none" else count(text)
