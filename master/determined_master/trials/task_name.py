"""Task ids of trials; they begin with the id of the experiment."""


def task_name(experiment_id: int, request_id: str) -> str:
    return f"{experiment_id}.{request_id}"


def experiment_of(task_id: str) -> int | None:
    """Returns the experiment id, or None for a name that is not a trial's.

    >>> experiment_of(task_name(7, "a-b")), experiment_of("shell.7")
    (7, None)
    """
    number, dot, _ = task_id.partition(".")
    return int(number) if dot and number.isdecimal() and number.isascii() else None
