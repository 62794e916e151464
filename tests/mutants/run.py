"""Mutation tests: each patch beside this file breaks one promise, and the tests that it names must fail.

Tests below ``webui/`` run in Vitest, all others in pytest.

``python tests/mutants/run.py [NAME…]``. A patch survives if its tests pass or cannot run, or if it no longer applies.
The same tests must first pass without any patch.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from determined_agent.task_process import processes
from determined_launch import process_table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ROOTS = ("launch", "harness", "master", "agent", "workflows", "cli")
CONCURRENCY = 2
SECONDS = 180
UNPATCHED_SECONDS = 1800
"""All named tests run once on the tree as it is; each patch runs only its own."""
TESTS_FAILED = 1  # pytest's code; others mean that it did not come to a verdict
NO_VERDICT = 2
PAGE = "webui/"
NO_END = 124


@dataclass(frozen=True)
class Mutant:
    """A patch, the tests that must fail with it, and the promise that it breaks."""

    path: Path
    tests: tuple[str, ...]
    why: str

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    is_caught: bool
    text: str
    seconds: float


def read(path: Path) -> Mutant:
    """Reads a patch. Raises ValueError if a header is missing."""
    heads = dict(
        line[2:].split(": ", 1) for line in path.read_text(encoding="utf-8").splitlines()[:2] if line.startswith("# ")
    )
    if not heads.get("tests") or not heads.get("why"):
        raise ValueError(f"{path.name}: the first two lines must be '# tests: …' and '# why: …'")
    return Mutant(path, tuple(heads["tests"].split()), heads["why"])


def all_mutants() -> list[Mutant]:
    return [read(path) for path in sorted(HERE.glob("*.patch"))]


def copy_tree(target: Path) -> None:
    """Copies the tracked files as they are in the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def apply(mutant: Mutant, tree: Path, *, check: bool = False) -> str:
    """Applies a patch; returns the error of ``git apply``, or an empty text if it applies."""
    argv = ["git", "apply", *(["--check"] if check else []), str(mutant.path)]
    done = subprocess.run(argv, cwd=tree, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def run_tests(tree: Path, tests: Sequence[str], *more: str, seconds: int = SECONDS) -> tuple[int, str]:
    """Returns pytest's exit code (0 if all passed, 1 if one failed) and the end of its output."""
    pages = [test for test in tests if test.startswith(PAGE)]
    others = [test for test in tests if not test.startswith(PAGE)]
    code, text = run_pytest(tree, others, *more, seconds=seconds) if others else (0, "")
    return run_vitest(tree, pages) if pages and code == 0 else (code, text)


def run_vitest(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Runs Vitest on files of the page. Types are stripped and not checked."""
    modules = ROOT / PAGE / "node_modules"
    if not modules.is_dir():
        return NO_VERDICT, "the page's packages are not there: make webui-types fetches them"
    (tree / PAGE / "node_modules").symlink_to(modules)
    report = tree / "vitest.json"
    names = [test.removeprefix(PAGE) for test in tests]
    argv = ["sh", "scripts/webui.sh", sys.prefix, "test", "--reporter=json", f"--outputFile={report}", *names]
    try:
        done = subprocess.run(argv, cwd=tree, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return NO_END, f"did not end within {SECONDS} s"
    text = (done.stdout + done.stderr)[-3000:]
    if done.returncode == 0:
        return 0, text
    # Vitest also exits with 1 if a file is missing or cannot be read.
    results = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
    return TESTS_FAILED if results.get("numFailedTests", 0) > 0 else NO_VERDICT, json.dumps(results)[-3000:] + text


def run_pytest(tree: Path, tests: Sequence[str], *more: str, seconds: int = SECONDS) -> tuple[int, str]:
    """Runs pytest with the packages of ``tree``; returns its exit code and the end of its output."""
    environment = dict(os.environ)
    paths = [str(tree / root) for root in ROOTS] + [str(tree)]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": ""}
    # Of a test with a long form the short one has to catch the patch too.
    options = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not long", "--timeout", "60")
    argv = [sys.executable, "-m", "pytest", *options, *more, *tests]
    try:
        done = subprocess.run(argv, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return NO_END, f"did not end within {seconds} s"
    return done.returncode, (done.stdout + done.stderr)[-3000:]


def judge(mutant: Mutant) -> Verdict:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        tree = Path(name)
        copy_tree(tree)
        complaint = apply(mutant, tree)
        if complaint:
            return Verdict(mutant, False, f"no longer applies: {complaint}", time.monotonic() - start)
        code, text = run_tests(tree, mutant.tests)
    is_caught = code == TESTS_FAILED
    if is_caught:
        text = ""
    elif code:
        text = f"its tests came to no verdict (exit code {code}):\n{text}"
    else:
        text = "its tests stay green"
    return Verdict(mutant, is_caught, text, time.monotonic() - start)


def is_green(mutants: Sequence[Mutant]) -> bool:
    """Returns True if all named tests pass on the tree as it is; prints the failures if not."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        copy_tree(Path(name))
        code, text = run_tests(Path(name), tests, "-n", str(CONCURRENCY), seconds=UNPATCHED_SECONDS)
    if code:
        print(f"The tests are not green without any patch:\n{text}", flush=True)
    return code == 0


def main(names: Sequence[str]) -> int:
    start = time.monotonic()
    mutants = [mutant for mutant in all_mutants() if not names or mutant.name in names]
    if not mutants:
        print(f"no patch of these names: {' '.join(names)}", file=sys.stderr)
        return 2
    processes.become_subreaper()  # a mutant may leave processes behind; they must end with this one
    try:
        return judge_all(mutants, start) if is_green(mutants) else 1
    finally:
        processes.kill_all(lambda: set(process_table.descendants(os.getpid())))


def judge_all(mutants: Sequence[Mutant], start: float) -> int:
    caught = 0
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        for verdict in pool.map(judge, mutants):
            caught += verdict.is_caught
            word = "caught" if verdict.is_caught else "SURVIVED"
            print(f"{word:<9} {verdict.mutant.name:<32} {verdict.seconds:5.1f} s  {verdict.mutant.why}", flush=True)
            if verdict.text:
                print(f"          {verdict.text}", flush=True)
    print(f"{caught}/{len(mutants)} caught in {time.monotonic() - start:.0f} s", flush=True)
    return 0 if caught == len(mutants) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
