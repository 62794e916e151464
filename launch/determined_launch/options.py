"""Looks up options in a user's overrides, in every spelling that the launcher's own parser accepts."""

from collections.abc import Mapping, Sequence

# options that take no value, over all launchers; for any other one the next word is its value unless it is an option
_FLAGS = frozenset(
    {"standalone", "module", "no_python", "run_path", "virtual_local_rank"}
    | {"no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid", "bind_cores_to_rank", "quiet"}
    | {"gloo", "mpi", "jsrun", "verbose", "disable_cache", "autotune", "no_autotune", "check_build"}
    | {"hierarchical_allreduce", "no_hierarchical_allreduce", "hierarchical_allgather", "no_hierarchical_allgather"}
)
_ON = "1"


def given(overrides: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Returns the options in ``overrides`` that ``known`` lists; of equal options the last one wins.

    ``known`` maps a spelling with ``_`` to the canonical name. Accepts ``--a-b``, ``--a_b``, ``--a=b`` and an
    unambiguous prefix, as argparse does.
    """
    options: dict[str, str] = {}
    words = list(overrides)
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        if not word.startswith("-"):
            continue
        name, equals, value = word.partition("=")
        bare = name.lstrip("-").replace("-", "_")
        full = _full(bare, name.startswith("--"), known)
        is_flag = (full or bare) in _FLAGS
        if not equals and not is_flag and index < len(words) and not words[index].startswith("-"):
            value, index = words[index], index + 1
        if full is not None:
            options[known[full]] = _ON if is_flag else value
    return options


def without(overrides: Sequence[str], flags: Sequence[str]) -> tuple[str, ...]:
    """Returns ``overrides`` without the given options, which take no value."""
    dropped = {flag.replace("-", "_") for flag in flags}
    return tuple(
        word for word in overrides if not (word.startswith("-") and word.lstrip("-").replace("-", "_") in dropped)
    )


def command(words: Sequence[str], given: Mapping[str, str], python: str) -> list[str]:
    """Returns the worker's command: ``words``, with ``python -m`` in front if ``--module`` was given.

    With ``--module`` or ``--no_python`` an interpreter in front of a script is left out.
    """
    own = list(words)
    if "module" not in given and "no_python" not in given:
        return own
    if own[:1] == [python] and own[1:2] != ["-m"]:
        own = own[1:]  # the interpreter that precedes a script
    return [python, "-m", *own] if "module" in given else own


def _full(bare: str, is_long: bool, known: Mapping[str, str]) -> str | None:
    if bare in known:
        return bare
    fitting = [name for name in known if is_long and len(bare) > 2 and name.startswith(bare)]
    return fitting[0] if fitting and len({known[name] for name in fitting}) == 1 else None
