"""``det experiment diff``: the differences of two experiments, in configuration, state of the code, and files."""

import difflib
import sys
from argparse import Namespace
from collections.abc import Iterator

import yaml

from determined.client import experiments, lifecycle
from determined.client.session import Session
from determined_cli import connection
from determined_cli.experiment.context_files import ContextFile, read_files
from determined_cli.terminal.messages import say

MAX_CHARACTERS = 1 << 20
"""Of the differences of files together; files beyond it are only named."""


def diff(args: Namespace) -> None:
    """Prints the differences as unified diffs, without secrets, which the master masks."""
    session = connection.connect(args.options)
    ids = (args.experiment_id, args.other_id)
    parts = [
        *_unified(*(_config(session, each) for each in ids), *(f"configuration of experiment {each}" for each in ids)),
        *_unified(*(_code(session, each) for each in ids), *(f"code of experiment {each}" for each in ids)),
        *_files(session, *ids),
    ]
    if not parts:
        say(f"experiments {ids[0]} and {ids[1]} have the same configuration and the same code")
        return
    is_terminal = sys.stdout.isatty()
    for line in parts:
        sys.stdout.write(f"{_harmless(line) if is_terminal else line}\n")


def _config(session: Session, experiment_id: int) -> str:
    config = experiments.get(session, experiment_id).get("config") or {}
    return yaml.safe_dump(config, sort_keys=True, allow_unicode=True)


def _code(session: Session, experiment_id: int) -> str:
    """Returns the state of the code as text; empty if none is stored."""
    code = experiments.code(session, experiment_id)
    if code is None:
        return ""
    lines = [f"{name}: {code.get(name) or 'none'}" for name in ("commit", "branch", "remote")]
    lines += [f"untracked: {name}" for name in code.get("untracked") or ()]
    lines.append(f"uncommitted changes:{'' if code.get('isDirty') else ' none'}")
    if code.get("isCut"):
        lines.append("(the changes are stored only in part)")
    return "\n".join([*lines, str(code.get("diff") or "")])


def _files(session: Session, first_id: int, other_id: int) -> Iterator[str]:
    """Yields the differences of the contexts: names that only one has, and unified diffs of text files."""
    first, other = (read_files(lifecycle.model_definition(session, each)) for each in (first_id, other_id))
    left = MAX_CHARACTERS
    for name in sorted(first.keys() | other.keys()):
        before, after = first.get(name), other.get(name)
        if before is not None and after is not None and before.digest == after.digest:
            continue
        lines = _file(name, before, after, first_id, other_id)
        left -= sum(map(len, lines))
        yield from lines if left >= 0 else [f"{name} differs"]


def _file(name: str, before: ContextFile | None, after: ContextFile | None, first_id: int, other_id: int) -> list[str]:
    texts = ["" if each is None else each.text for each in (before, after)]
    labels = ["/dev/null" if each is None else f"{id}/{name}" for id, each in ((first_id, before), (other_id, after))]
    if texts[0] is None or texts[1] is None or texts[0] == texts[1]:  # not a text, too large, or both empty
        where = f"differs between experiments {first_id} and {other_id}"
        if before is None or after is None:
            where = f"is only in experiment {other_id if before is None else first_id}"
        return [f"{name} {where}"]
    return list(_unified(texts[0], texts[1], *labels))


def _unified(before: str, after: str, first_label: str, other_label: str) -> Iterator[str]:
    return difflib.unified_diff(before.splitlines(), after.splitlines(), first_label, other_label, lineterm="")


def _harmless(line: str) -> str:
    """Returns the line without control characters, which a terminal would obey."""
    return "".join(each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}" for each in line)
