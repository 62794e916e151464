"""The state of a folder's code in git: commit, branch, remote, uncommitted changes and untracked files.

The folder may be somebody else's, so git runs no program that the repository names (hooks, filters, text conversions,
diff programs, a file system monitor) and fetches nothing. It is bounded in time, and its output in size.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from determined.context.git_process import Git, GitTimeout
from determined.context.ignore import Ignore
from determined.errors import ContextError

SWITCH = "DET_STORE_CODE"
"""Environment variable; ``0`` keeps the state of the code out of every submission."""
MAX_DIFF_BYTES = 1 << 20
MAX_LISTING_BYTES = 4 << 20
"""Maximum bytes of the names of changed and untracked files that are read."""
MAX_NAMES = 1000
MAX_NAME_CHARACTERS = 1000
_NO_COMMIT = "(initial)"
_DETACHED = "(detached)"
_SETTINGS = r"^(filter\..*\.(clean|process|required|smudge)|remote\..*\.url|branch\..*\.remote)$"
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--submodule=short")
_WEB = re.compile(r"(?i)^((?:https?|ftps?)://)(?:[^/]*@|[^/:]*:(?!\d*(?:/|$))[^@]*@)?([^?#]*).*$", re.DOTALL)
_PASSWORD = re.compile(r"^([a-z][a-z0-9+.-]*://[^/:@]*):[^/]*@", re.IGNORECASE)


@dataclass(frozen=True)
class CodeState:
    """What git says about a folder.

    ``diff``: changes of tracked files that are part of the context, against the commit; ``is_cut`` if it is not whole.
    ``untracked``: files of the context that git does not know, relative to the folder; at most 1,000.
    """

    commit: str | None
    branch: str | None
    remote: str | None
    diff: str = ""
    is_cut: bool = False
    untracked: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the field ``code`` of a submission."""
        return {
            "commit": self.commit,
            "branch": self.branch,
            "remote": self.remote,
            "diff": self.diff,
            "isCut": self.is_cut,
            "untracked": list(self.untracked),
        }


def code_state(
    folder: Path, exclude: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> tuple[CodeState | None, str]:
    """Returns the state of the code below ``folder``, and a warning, or "".

    The state is None without a repository or without git, and where git takes too long, which the warning says.
    ``exclude``: patterns in addition to those of ``.detignore``, whose files are left out.
    """
    program = shutil.which("git", path=environ.get("PATH"))
    if environ.get(SWITCH) == "0" or program is None or not os.path.isabs(program):
        return None, ""
    git = Git(program, folder, environ)
    try:
        return _read(git, Ignore.of_folder(folder, exclude))
    except GitTimeout as error:
        return None, f"warning: {error}; the state of the code in {folder} is not stored ({SWITCH}=0 turns it off)"
    except (OSError, ContextError, ValueError):
        return None, ""


def without_credentials(url: str) -> str:
    """Returns the URL of a remote without user, password and query of an address of the web.

    >>> without_credentials("https://me:token@example.org/a.git"), without_credentials("git@example.org:a.git")
    ('https://example.org/a.git', 'git@example.org:a.git')
    """
    return _PASSWORD.sub(r"\1@", _WEB.sub(r"\1\2", url))


def _read(git: Git, ignore: Ignore) -> tuple[CodeState | None, str]:
    prefix = git.read("rev-parse", "--show-prefix", most=MAX_LISTING_BYTES)
    if prefix is None:
        return None, ""
    settings = _settings(git)
    git.disable_filters(settings)
    listed = git.read(
        *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty"),
        *("--no-renames", "--", "."),
        most=MAX_LISTING_BYTES,
    )
    if listed is None:
        return None, ""
    status = _Status.of(listed.text, prefix.text.removesuffix("\n"), ignore, is_cut=listed.is_cut)
    state = CodeState(
        commit=status.commit,
        branch=_short(status.branch),
        remote=_short(_remote(settings, status.branch)),
        untracked=tuple(map(_readable, status.untracked[:MAX_NAMES])),
        is_cut=listed.is_cut or len(status.untracked) > MAX_NAMES,
    )
    if status.commit is None or not status.changed:
        return state, ""
    return _with_diff(git, state, status.changed)


def _with_diff(git: Git, state: CodeState, changed: Sequence[str]) -> tuple[CodeState, str]:
    warning = ""
    try:
        words = ("diff", "HEAD", *_DIFF, "--", *changed[:MAX_NAMES])
        read = git.read(*words, most=MAX_DIFF_BYTES, is_cut_at_deadline=True)
    except OSError:  # names that are longer together than a command line may be
        read = None
    text, is_cut = ("", True) if read is None else (read.text, read.is_cut or len(changed) > MAX_NAMES)
    if read is not None and read.is_late:
        warning = "warning: git diff took too long; the uncommitted changes are stored only in part"
    if is_cut:
        text = text[: text.rfind("\n") + 1]  # the last line may be a part of one
    return replace(state, diff=_readable(text), is_cut=state.is_cut or is_cut), warning


def _settings(git: Git) -> dict[str, str]:
    """Returns the settings of filters and remotes, by name."""
    read = git.read("config", "-z", "--get-regexp", _SETTINGS, most=MAX_LISTING_BYTES)
    entries = read.text.split("\0") if read is not None else []
    return {name: value for name, _, value in (entry.partition("\n") for entry in entries) if name}


def _remote(settings: Mapping[str, str], branch: str | None) -> str | None:
    """Returns the URL of the branch's remote, else of ``origin``, else of the first one."""
    named = settings.get(f"branch.{branch}.remote", "origin")
    urls = {name: url for name, url in settings.items() if name.startswith("remote.")}
    url = urls.get(f"remote.{named}.url") or urls.get("remote.origin.url") or next(iter(urls.values()), None)
    return None if url is None else without_credentials(url)


def _short(text: str | None) -> str | None:
    return None if text is None else _readable(text[:MAX_NAME_CHARACTERS])


def _readable(text: str) -> str:
    """Returns the text as UTF-8 can write it."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


@dataclass(frozen=True)
class _Status:
    """The output of ``git status``, for the files of the context; paths are relative to the folder."""

    commit: str | None
    branch: str | None
    changed: tuple[str, ...]
    untracked: tuple[str, ...]

    @classmethod
    def of(cls, text: str, prefix: str, ignore: Ignore, *, is_cut: bool) -> "_Status":
        entries = text.split("\0")
        if is_cut:
            entries = entries[:-1]  # the last one may be a part of a name
        headers = dict(entry[2:].split(" ", 1) for entry in entries if entry.startswith("# branch."))
        commit, branch = headers.get("branch.oid", _NO_COMMIT), headers.get("branch.head", _DETACHED)
        has_commit = commit != _NO_COMMIT
        changed = [path for path, is_new in _paths(entries, prefix, ignore) if has_commit and not is_new]
        untracked = [path for path, is_new in _paths(entries, prefix, ignore) if is_new or not has_commit]
        return cls(
            commit if has_commit else None, None if branch == _DETACHED else branch, tuple(changed), tuple(untracked)
        )


_FIELDS = {"1": 9, "u": 11, "?": 2}
"""Fields of an entry by its kind; the path is the last one."""


def _paths(entries: Sequence[str], prefix: str, ignore: Ignore) -> Iterator[tuple[str, bool]]:
    """Yields the path of each entry that the context has, and True for a file that git does not know."""
    for entry in entries:
        kind = entry[:1]
        fields = entry.split(" ", _FIELDS.get(kind, 1) - 1)
        if len(fields) != _FIELDS.get(kind) or not fields[-1].startswith(prefix):
            continue
        path = fields[-1][len(prefix) :]
        if path and len(path) <= MAX_NAME_CHARACTERS and not _is_left_out(path, ignore):
            yield path, kind == "?"


def _is_left_out(path: str, ignore: Ignore) -> bool:
    folders = [path[:index] for index, sign in enumerate(path) if sign == "/"]
    return any(ignore.excludes(each, is_folder=True) for each in folders) or ignore.excludes(path, is_folder=False)
