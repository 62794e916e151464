"""How trials end, as searches count it, and ranks in words."""

INVALID_HP = "invalid_hp"
"""Reason of a closed trial whose code refused its hyperparameters."""


def all_failed(count: int) -> str:
    """Returns why a search whose every trial failed is over; nothing of a single trial, whose own failure says it."""
    return f"every trial of the search failed ({count} of {count})" if count > 1 else ""


MIN_INVALID = 10


def is_hopeless(invalid: int, wanted: int) -> bool:
    """Returns True if no more trials are to replace those whose hyperparameters are invalid, where no trial was valid:
    as many as the search wants were tried, and at least MIN_INVALID. Otherwise it would go on for ever."""
    return invalid >= max(MIN_INVALID, wanted)


def all_invalid(count: int) -> str:
    """Returns why a search that only had trials with invalid hyperparameters is over."""
    which = f"all {count} trials so far" if count > 1 else "the only trial"
    return f"{which} reported invalid hyperparameters; change their ranges, or what the code accepts"


def ordinal(number: int) -> str:
    """Returns a rank in words.

    >>> [ordinal(number) for number in (1, 2, 3, 7, 11, 22)]
    ['1st', '2nd', '3rd', '7th', '11th', '22nd']
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
