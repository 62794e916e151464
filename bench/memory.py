"""Memory of a master 10 s after it is ready, with one agent connected and one sign-in."""

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.figure import Figure
from bench.servers import Running, master, program, resident_mib
from bench.submitting import until

LIMIT_MIB = 120
SECONDS = 10.0


def figures(rounds: int = 7) -> list[Figure]:
    """All masters idle at the same time, since the memory of one does not depend on the others."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        masters = [_with_agent(stack, Path(name) / str(number)) for number in range(rounds)]
        time.sleep(SECONDS)
        resident = [resident_mib(running.process.pid) for running in masters]
    ratios = [mebibytes / LIMIT_MIB for mebibytes in resident]
    note = f"{min(resident):.1f} to {max(resident):.1f} MiB"
    return [Figure(f"master VmRSS, one agent, one login / {LIMIT_MIB} MiB", 1.0, ratios, note=note)]


def _with_agent(stack: ExitStack, folder: Path) -> Running:
    folder.mkdir()
    running = stack.enter_context(master(folder / "data"))
    argv = [sys.executable, "-m", "determined_agent", "--master", running.url, "--id", "bench", "--slots", "1"]
    argv += ["--token-file", str(running.data / "agent-token"), "--data", str(folder / "agent"), "--tasks-as-me"]
    stack.enter_context(program(argv))
    session = stack.enter_context(running.session())
    until(lambda: any(agent["connected"] for agent in session.get("/api/v1/agents")["agents"]), "the agent")
    return running


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
