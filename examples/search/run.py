"""An adaptive search on four agents while others use the cluster: ``python examples/search/run.py [--trials N]``.

Starts a cluster of this machine with four agents of two slots, searches with 64 trials, lets a second user's job of
better priority take slots and give them back, kills an agent and starts it again, and accounts for every trial.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from determined.client.session import Session

ROOT = Path(__file__).resolve().parents[2]
HERE, DIGITS = ROOT / "examples" / "search", ROOT / "examples" / "digits"
BIN = Path(sys.executable).parent
AGENTS, SLOTS = 4, 2
PASSWORD = "Search-Example-1"
ENDED = ("STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR")


def say(text: str = "") -> None:
    print(text, flush=True)


class Cluster:
    """A master and four agents with two slots each, as processes of this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(home / "config"), "OMP_NUM_THREADS": "1"}
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def det(self, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        """Runs a command as a user would, its line first."""
        say(f"$ det {' '.join(a.removeprefix(f'{ROOT}/') for a in arguments)}")
        environment = {**self.environment, **(variables or {})}
        subprocess.run([BIN / "det", *arguments], env=environment, check=True)

    def start(self) -> None:
        self.det("up", "--detach", "--port", "0", "--data", str(self.data), "--slots", str(SLOTS), "--no-browser")
        for number in range(2, AGENTS + 1):
            self.start_agent(f"agent-{number}")
        wait_for(lambda: len(self.session.get("/api/v1/agents")["agents"]) == AGENTS, "all agents")

    def start_agent(self, name: str) -> None:
        folder = self.home / name
        folder.mkdir(exist_ok=True)
        with (folder / "log").open("ab") as log:
            self.agents[name] = subprocess.Popen(
                [
                    *(BIN / "det-agent", "--master", self.url, "--token-file", self.data / "agent-token", "--id", name),
                    *("--slots", str(SLOTS), "--data", folder / "data", "--tasks-as-me"),
                ],
                stdout=log,
                stderr=log,
                env=self.environment,
            )

    def kill_agent(self, name: str) -> None:
        agent = self.agents.pop(name)
        agent.kill()
        agent.wait()

    def stop(self) -> None:
        for agent in self.agents.values():
            agent.send_signal(signal.SIGTERM)
        self.det("down", "--data", str(self.data))
        for agent in self.agents.values():
            agent.wait()

    @property
    def url(self) -> str:
        return str(self._store()["default_master"])

    @property
    def session(self) -> Session:
        """The login of the cluster's first user."""
        entry = self._store()["masters"][self.url]
        return Session(self.url, token=entry["tokens"][entry["active_user"]])

    def _store(self) -> dict[str, Any]:
        store: dict[str, Any] = json.loads((self.home / "config" / "detent" / "auth.json").read_text())
        return store


def wait_for(condition: Callable[[], bool], what: str, *, within: float = 600.0) -> None:
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {within:.0f} s")
        time.sleep(0.2)


def trials_of(session: Session, experiment_id: int) -> list[dict[str, Any]]:
    return list(session.get(f"/api/v1/experiments/{experiment_id}/trials", query={"limit": 1000})["trials"])


def ended(session: Session, experiment_id: int) -> int:
    return sum(trial["state"] in ENDED for trial in trials_of(session, experiment_id))


def has_ended(session: Session, experiment_id: int) -> bool:
    return session.get(f"/api/v1/experiments/{experiment_id}")["experiment"]["state"] in ENDED


def search(cluster: Cluster, trials: int) -> None:
    """Runs the search as experiment 1, and the urgent job as experiment 2."""
    session = cluster.session
    config = yaml.safe_load((HERE / "search.yaml").read_text())
    config["searcher"]["max_trials"] = trials
    written = cluster.home / "search.yaml"
    written.write_text(yaml.safe_dump(config, sort_keys=False))
    cluster.det("experiment", "create", str(written), str(DIGITS))
    wait_for(lambda: ended(session, 1) >= trials // 6, "the first trials")
    say(f"\n{ended(session, 1)} trials have ended. A second user's job of better priority comes.")
    ada = {"DET_USER": "ada", "DET_PASS": PASSWORD}
    cluster.det("experiment", "create", str(HERE / "urgent.yaml"), str(DIGITS), variables=ada)
    wait_for(lambda: has_ended(session, 2), "the urgent job")
    say("The urgent job has ended; the search has its slots back.")
    wait_for(lambda: ended(session, 1) >= trials // 2, "half of the trials")
    say(f"\n{ended(session, 1)} trials have ended. kill -9 of agent-3; it returns after three seconds.")
    cluster.kill_agent("agent-3")
    time.sleep(3)
    cluster.start_agent("agent-3")
    wait_for(lambda: has_ended(session, 1), "the search", within=1800)


def account(cluster: Cluster, experiment_id: int, expected: int) -> list[str]:
    """Prints the table of all trials; returns what is wrong with it."""
    session = cluster.session
    found = session.get(f"/detent/experiments/{experiment_id}/search")
    last = {each["trialId"]: each for each in found["decisions"]}
    wrong, table = [], []
    attempts: Counter[int] = Counter()
    for trial in sorted(trials_of(session, experiment_id), key=lambda each: int(each["id"])):
        number = int(trial["id"])
        attempts[number] = len(session.get(f"/detent/trials/{number}/attempts")["attempts"])
        hparams = trial["hparams"]
        decision = last.get(number)
        table.append(
            f"{number:4d}  {trial['state'].removeprefix('STATE_'):<9} {hparams['learning_rate']:<8.4f} "
            f"{hparams['hidden']:>6} {hparams['dropout']:<7.3f} {trial['totalBatchesProcessed']:>5} "
            f"{attempts[number]:>8}  {decision['reason'] if decision else '-'}"
        )
        if trial["state"] != "STATE_COMPLETED":
            wrong.append(f"trial {number} ended as {trial['state']}")
        if trial["restarts"]:
            wrong.append(f"trial {number} failed {trial['restarts']} times")
        if decision is None:
            wrong.append(f"trial {number} has no decision")
    head = (
        f"{'id':>4}  {'state':<9} {'rate':<8} {'hidden':>6} {'dropout':<7} {'steps':>5} {'attempts':>8}  last decision"
    )
    say(f"\n{head}")
    say("\n".join(table))
    say("\nbracket  rung  trained to  results  (of trials)")
    for bracket in found["brackets"]:
        for rung, (units, results) in enumerate(zip(bracket["units"], bracket["results"], strict=True), 1):
            trials = bracket["trials"] if rung == 1 else ""
            say(f"{bracket['number']:7d}  {rung:4d}  {units:10}  {results:7d}  {trials:>5}")
    if len(table) != expected:
        wrong.append(f"{len(table)} trials instead of {expected}")
    resumed = sum(count > 1 for count in attempts.values())
    say(f"\n{len(table)} trials, all accounted for; {resumed} of them were preempted and resumed." if not wrong else "")
    if not resumed:
        wrong.append("no trial was preempted")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=64, help="number of trials (default: 64)")
    parser.add_argument("--home", type=Path, default=ROOT / ".det" / "search", help="folder of the cluster")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.home, ignore_errors=True)
    arguments.home.mkdir(parents=True)
    cluster = Cluster(arguments.home)
    began = time.monotonic()
    cluster.start()
    try:
        cluster.det("user", "create", "ada", "--password", PASSWORD)
        search(cluster, arguments.trials)
        wrong = account(cluster, 1, arguments.trials)
    finally:
        cluster.stop()
    for line in wrong:
        say(f"wrong: {line}")
    say(f"It took {time.monotonic() - began:.0f} s.")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
