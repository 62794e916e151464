"""Cost of the command line: ``det`` against the bare interpreter, and against the official client."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, Skipped, paired
from bench.processes import det, seconds
from bench.servers import ROOT, master

PASS = [sys.executable, "-c", "pass"]
EXPERIMENTS = 10
CONFIG = "name: listed\nentrypoint: 'true'\nsearcher: {name: single, metric: loss}\nhyperparameters: {}\n"


def figures(rounds: int = 15) -> Iterator[Figure]:
    yield _against_pass("det --version / python -c pass", 1.5, ["--version"], 2 * rounds)
    yield _against_pass(
        "det experiment create --help / python -c pass", 3.0, ["experiment", "create", "--help"], rounds
    )
    yield from _listing(rounds)


def _against_pass(name: str, goal: float, words: list[str], rounds: int) -> Figure:
    argv = [det(), *words]
    for warm in (argv, PASS):
        seconds(warm)
    ratios, note = paired(lambda: seconds(argv) * 1000, lambda: seconds(PASS) * 1000, rounds)
    return Figure(name, goal, ratios, note=f"{note} ms")


def _listing(rounds: int) -> list[Figure]:
    try:
        theirs = official()
    except Skipped as reason:
        print(f"cli: det experiment list against the official det: skipped: {reason}", flush=True)
        return []
    with tempfile.TemporaryDirectory() as name, master(Path(name) / "data") as running:
        with running.session() as admin:
            for _ in range(EXPERIMENTS):
                admin.post("/api/v1/experiments", {"config": CONFIG, "activate": False})
        environment = logged_in(running.url, running.data, Path(name), theirs)
        apart = without_ours(environment)
        ours = [det(), "experiment", "list", "--all"]
        reference = [theirs, "experiment", "list", "--all"]
        for warm, where in ((ours, environment), (reference, apart)):
            listed = subprocess.run(warm, env=where, capture_output=True, text=True)
            if listed.stdout.count("listed") != EXPERIMENTS:
                raise RuntimeError(f"{warm[0]} does not list the experiments: {listed.stdout}{listed.stderr}")
        ratios, note = paired(
            lambda: seconds(ours, environment) * 1000, lambda: seconds(reference, apart) * 1000, rounds
        )
    return [Figure("det experiment list / official det", 0.25, ratios, note=f"{note} ms")]


def official() -> str:
    """Returns the path of the unmodified client's ``det``. Raises Skipped if it is not installed."""
    folder = Path(os.environ.get("DETENT_OFFICIAL") or ROOT / ".cache" / "official")
    if not (folder / "bin" / "det").exists():
        raise Skipped("no official client; make official installs it, DETENT_OFFICIAL names another place")
    return str(folder / "bin" / "det")


def logged_in(url: str, data: Path, folder: Path, theirs: str) -> dict[str, str]:
    """Returns an environment in which both clients have a token. ``data``: the master's folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    environment = {**inherited, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "DET_MASTER": url}
    password = (data / "password").read_text().strip()
    login = ["user", "login", "admin"]
    subprocess.run(
        [det(), *login], env={**environment, "DET_PASS": password}, check=True, capture_output=True, timeout=60
    )
    # Without a terminal the official client reads the password from standard input.
    subprocess.run(
        [theirs, *login],
        env=without_ours(environment),
        input=f"{password}\n".encode(),
        check=True,
        capture_output=True,
        start_new_session=True,
        timeout=60,
    )
    return environment


def without_ours(environment: dict[str, str]) -> dict[str, str]:
    """Returns the environment without PYTHONPATH: our library has the same name as the official one and must not
    precede it."""
    return {name: value for name, value in environment.items() if name != "PYTHONPATH"}


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
