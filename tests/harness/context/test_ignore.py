"""``.detignore`` patterns match as git's do, on random trees."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from determined.context.walk import walk

pytestmark = pytest.mark.budget(15, "runs git for random trees")

NAMES = ["a", "b", "foo", "bar", "x.py", "y.log", "foo.txt", "a b", "#c", "!d", "[e]", "Foo", ".hid"]
PIECES = [
    "a",
    "b",
    "foo",
    "bar",
    "*",
    "*.log",
    "*.py",
    "f*",
    "?",
    "foo.*",
    "[a-f]*",
    "[!a]*",
    "**",
    "x.py",
    ".*",
    "[e]",
]
ODD = [
    "",
    "# a comment",
    "\\#c",
    "\\!d",
    "a\\ b",
    "a b  ",
    "foo\\",
    "[",
    "/",
    "//",
    "!",
    "**/",
    "/**",
    "a/**/b",
    "\\a",
    "[]a]",
    "***",
    "a**b",
    "[[:alpha:]]",
]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def grow(rng: random.Random, folder: Path, depth: int = 0) -> None:
    """Creates random files and folders."""
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        if depth < 3 and rng.random() < 0.5:
            (folder / name).mkdir()
            grow(rng, folder / name, depth + 1)
        else:
            (folder / name).touch()


def pattern(rng: random.Random) -> str:
    """Returns a random line of ``.detignore``."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    text = "/".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
    if rng.random() < 0.25:
        text = f"/{text}"
    if rng.random() < 0.25:
        text += "/"
    return f"!{text}" if rng.random() < 0.3 else text


def not_ignored_by_git(repository: Path) -> set[str]:
    """Returns every entry that git does not ignore, neither itself nor by a folder above it."""
    paths = [
        os.path.relpath(os.path.join(above, name), repository)
        for above, folders, files in os.walk(repository)
        if ".git" not in Path(above).relative_to(repository).parts
        for name in folders + files
        if name != ".git"
    ]
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/"}
    answer = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(paths).encode(),
        cwd=repository,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    ignored = set(answer.stdout.decode().split("\0"))
    return {path for path in paths if path not in ignored}


@needs_git
@pytest.mark.parametrize("trees", [pytest.param(100, id="sample"), pytest.param(500, id="all", marks=pytest.mark.long)])
def test_ignore_patterns_match_as_git_does_on_random_trees(tmp_path: Path, trees: int) -> None:
    rng = random.Random(20261121)
    repository = tmp_path / "tree"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", str(repository)], check=True, capture_output=True)
    for _ in range(trees):
        for child in repository.iterdir():
            if child.name != ".git":
                shutil.rmtree(child) if child.is_dir() else child.unlink()
        grow(rng, repository)
        lines = [pattern(rng) for _ in range(rng.randint(1, 5))]
        text = "\n".join(lines)
        (repository / ".git" / "info" / "exclude").write_text(text)
        (repository / ".detignore").write_text(text)
        ours = {entry.path for entry in walk(repository).entries}
        theirs = not_ignored_by_git(repository) - {".detignore"}
        assert ours == theirs, f"patterns {lines}: only ours {ours - theirs}, only git's {theirs - ours}"
