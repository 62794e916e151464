"""Looks up options in a user's overrides, in every spelling that the launcher's own parser accepts."""

from collections.abc import Iterator, Mapping, Sequence

# options that take no value, over all launchers; for any other one the next word is its value unless it is an option
_FLAGS = frozenset(
    {"standalone", "module", "no_python", "run_path", "virtual_local_rank"}
    | {"no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid", "bind_cores_to_rank", "quiet"}
    | {"gloo", "mpi", "jsrun", "verbose", "disable_cache", "autotune", "no_autotune", "check_build"}
    | {"hierarchical_allreduce", "no_hierarchical_allreduce", "hierarchical_allgather", "no_hierarchical_allgather"}
)
# Options of horovodrun with a long name after one dash: `-prefix-timestamp` is not `-p` with a value.
_LONG_WITH_ONE_DASH = frozenset({"prefix_timestamp"})
_ON = "1"


def given(overrides: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Returns the options in ``overrides`` that ``known`` lists; of equal options the last one wins.

    ``known`` maps a spelling with ``_`` to the canonical name. Accepts ``--a-b``, ``--a_b``, ``--a=b``, ``-Xvalue`` and
    an unambiguous prefix, as argparse does.
    """
    options: dict[str, str] = {}
    words = list(_separated(overrides, known))
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        if not word.startswith("-"):
            continue
        name, equals, value = word.partition("=")
        bare = _bare(name)
        full = _full(name, known)
        is_flag = (bare if full is None else known[full]) in _FLAGS
        if not equals and not is_flag and index < len(words) and not words[index].startswith("-"):
            value, index = words[index], index + 1
        if full is not None:
            options[known[full]] = _ON if is_flag else value
    return options


def without(overrides: Sequence[str], flags: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """Returns ``overrides`` without the given options of ``known``, which take no value, in every spelling."""
    dropped = {known[_bare(flag)] for flag in flags}
    words = _separated(overrides, known)
    return tuple(word for word in words if (full := _full(word, known)) is None or known[full] not in dropped)


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


def _bare(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _full(name: str, known: Mapping[str, str]) -> str | None:
    """Returns the spelling in ``known`` that a word means; None if it means none, or if several begin with it."""
    if not name.startswith("-"):
        return None
    bare, is_long = _bare(name), name.startswith("--")
    if bare in known and not (is_long and len(bare) == 1):
        return bare
    fitting = [full for full in known if is_long and bare and full.startswith(bare)]
    return fitting[0] if fitting and len({known[full] for full in fitting}) == 1 else None


def _separated(words: Sequence[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yields ``-Xvalue`` as ``-X=value``, and as ``-X`` and ``-value`` if ``-X`` takes no value; other words as they
    are."""
    for each in words:
        word = each
        while _is_joined(word, known):
            if known[word[1]] not in _FLAGS:
                word = f"{word[:2]}={word[2:]}"
                break
            yield word[:2]
            word = f"-{word[2:]}"
        yield word


def _is_joined(word: str, known: Mapping[str, str]) -> bool:
    """Returns True if a one-letter option and more follow one dash."""
    if not word.startswith("-") or word[1:2] not in known or word[2:3] in ("", "="):
        return False
    bare = _bare(word.partition("=")[0])
    return bare not in known and bare not in _LONG_WITH_ONE_DASH
