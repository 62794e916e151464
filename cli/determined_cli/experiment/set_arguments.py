"""Command table of ``det experiment set``."""

from determined_cli.command import EXPERIMENT_ID, YES, Command, argument


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


_RUN = "determined_cli.experiment.settings"
_KEPT = (
    ("--save-experiment-best", "best checkpoints kept of the experiment", 0),
    ("--save-trial-best", "best checkpoints kept of each trial", 1),
    ("--save-trial-latest", "newest checkpoints kept of each trial", 1),
)

SET_VERBS = (
    Command("name", "rename it", f"{_RUN}:set_name", (EXPERIMENT_ID, argument("name"))),
    Command(
        "description",
        "set its description; an empty text removes it",
        f"{_RUN}:set_description",
        (EXPERIMENT_ID, argument("description")),
    ),
    Command(
        "priority",
        "set its priority: 1 is scheduled first, 99 last",
        f"{_RUN}:set_priority",
        (EXPERIMENT_ID, argument("priority", type=int)),
    ),
    Command(
        "max-slots",
        "limit the slots that it may hold (none: no limit)",
        f"{_RUN}:set_max_slots",
        (EXPERIMENT_ID, argument("max_slots", type=slot_limit, metavar="MAX_SLOTS")),
    ),
    Command(
        "max-trials",
        "set how many trials its search may create",
        f"{_RUN}:set_max_trials",
        (EXPERIMENT_ID, argument("max_trials", type=count, metavar="N")),
    ),
    Command(
        "max-concurrent-trials",
        "set how many trials of its search train at once",
        f"{_RUN}:set_max_concurrent_trials",
        (EXPERIMENT_ID, argument("max_concurrent_trials", type=count, metavar="N")),
    ),
    Command(
        "weight",
        "set its weight for fair-share scheduling",
        f"{_RUN}:set_weight",
        (EXPERIMENT_ID, argument("weight", type=float)),
    ),
    Command(
        "gc-policy",
        "set how many checkpoints are kept",
        f"{_RUN}:set_gc_policy",
        (
            EXPERIMENT_ID,
            *(
                argument(name, type=count, default=default, metavar="N", help=f"{help} (default: {default})")
                for name, help, default in _KEPT
            ),
            YES,
        ),
    ),
)
