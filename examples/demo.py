"""`make demo`: a real model trained, paused, its slot freed, activated and finished, on a cluster of this machine."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from determined.client.session import Session

ROOT = Path(__file__).resolve().parent.parent
DET = str(Path(sys.executable).parent / "det")
DIGITS = ROOT / "examples" / "digits"
HOME = ROOT / ".det"
DATA = HOME / "demo"
ENVIRONMENT = {**os.environ, "XDG_CONFIG_HOME": str(HOME / "config")}
PAUSE_AT = 1 / 3


def say(text: str = "") -> None:
    print(text, flush=True)


def show(*arguments: str) -> None:
    """Runs a command as a user would, its line first."""
    say(f"\n$ det {' '.join(shown(a) for a in arguments)}")
    subprocess.run([DET, *arguments], env=ENVIRONMENT, check=True)


def master() -> Session:
    """The same login that the command line uses."""
    store = json.loads((HOME / "config" / "detent" / "auth.json").read_text())
    url = store["default_master"]
    entry = store["masters"][url]
    return Session(url, token=entry["tokens"][entry["active_user"]])


def shown(argument: str) -> str:
    return str(Path(argument).relative_to(ROOT)) if argument.startswith(str(ROOT)) else argument


def main() -> int:
    began = time.monotonic()
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    show("up", "--detach", "--port", "0", "--data", str(DATA), "--slots", "1")
    try:
        train()
    finally:
        show("down", "--data", str(DATA))
    say(f"\nIt took {time.monotonic() - began:.0f} s. To look further:")
    det = shown(DET)
    say(f"  {det} up --data {shown(str(DATA))}     # the same cluster again; Ctrl-C ends it")
    say(f"  {det} experiment logs 1       # in another terminal; or describe 1, list-checkpoints 1, fork 1")
    return 0


def train() -> None:
    show("experiment", "create", str(DIGITS / "const.yaml"), str(DIGITS))
    say("\nTraining; it will be paused at about a third.")
    session = master()
    follow(session, until=PAUSE_AT)
    show("experiment", "pause", "1")
    wait_for_free_slot(session)
    show("slot", "list")
    show("experiment", "list-checkpoints", "1")
    show("experiment", "activate", "1")
    follow(session, until=1.0)
    show("experiment", "wait", "1")
    say("\nValidation, from start to end; the pause left no mark on it:")
    draw_curve(session)
    log = subprocess.run([DET, "experiment", "logs", "1"], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    for line in re.findall(r"(?:continuing from checkpoint .*|final parameters .*)", log.stdout):
        say(line)


def follow(session: Session, until: float) -> None:
    """Shows a bar that moves on a terminal; elsewhere a line without a bar for each new state and tenth."""
    live = sys.stdout.isatty()
    last = ""
    while True:
        trial = session.get("/detent/trials/1/progress")
        best = f"  best {trial['metricName']} {trial['bestMetric']:.4f}" if trial["bestMetric"] is not None else ""
        done = round(30 * trial["progress"])
        if live:
            bar = f"[{'#' * done}{' ' * (30 - done)}]"
            print(f"\r  trial 1 {trial['state']:<9} {bar} step {trial['steps']:3d}{best}", end="", flush=True)
        elif last != (last := f"{trial['state']} {int(trial['progress'] * 10)}"):
            say(f"  trial 1 {trial['state']:<9} step {trial['steps']:3d}{best}")
        if trial["progress"] >= until or trial["state"] in ("COMPLETED", "ERROR", "CANCELED"):
            say()
            if trial["state"] in ("ERROR", "CANCELED"):
                raise SystemExit(f"the trial ended as {trial['state']}")
            return
        time.sleep(0.1 if live else 1.0)


def wait_for_free_slot(session: Session) -> None:
    began = time.monotonic()
    while any(slot["container"] for a in session.get("/api/v1/agents")["agents"] for slot in a["slots"].values()):
        time.sleep(0.01)
    say(f"The slot was free {time.monotonic() - began:.1f} s after the pause, the checkpoint taken.")


def draw_curve(session: Session) -> None:
    found = session.get("/api/v1/trials/1/workloads", query={"group": "validation"})["workloads"]
    curve = [each["validation"] for each in found if each.get("validation")]
    top = max(point["metrics"]["avgMetrics"]["accuracy"] for point in curve)
    for point in curve:
        accuracy = point["metrics"]["avgMetrics"]["accuracy"]
        loss = point["metrics"]["avgMetrics"]["validation_loss"]
        bar = "#" * max(1, round(40 * accuracy / top))
        say(f"  step {point['totalBatches']:4d}  {bar:<40}  accuracy {accuracy:.4f}  loss {loss:.4f}")


if __name__ == "__main__":
    raise SystemExit(main())
