"""From the start of a launch layer to the first collective, against the launcher's own command, on one node and two.

Two nodes are network namespaces, so this needs root. horovod's own command reaches the second by a real sshd.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.support.live_machines import Network, network
from tests.support.machines import Machine

from bench.figure import Figure, Skipped, paired
from bench.reference.sshd import SSH_PORT, Sshd
from bench.servers import ROOT

LAYERS = ("torch_distributed", "deepspeed", "horovod")
SCRIPT = str(ROOT / "bench" / "trials" / "first_collective.py")
PORT = "29871"


def figures(rounds: int = 5) -> list[Figure]:
    if os.geteuid() != 0:
        raise Skipped("only root may make machines of network namespaces")
    results = []
    with tempfile.TemporaryDirectory() as name, network(2) as net, Sshd(Path(name), net.machines[1].prefix) as sshd:
        for layer in LAYERS:
            for nodes in (1, 2):
                ours, theirs = Ours(layer, net, nodes, Path(name)), Theirs(layer, net, nodes, Path(name), sshd)
                ours(), theirs()
                ratios, note = paired(ours, theirs, rounds)
                where = f"{layer}, {nodes} node{'s' if nodes > 1 else ''}"
                results.append(Figure(f"first collective, {where} / bare", 1.15, ratios, note=f"{note} s"))
    return results


class Ours:
    """Runs the layer in every container as the agent starts it, with the rendezvous facts in a run folder."""

    def __init__(self, layer: str, net: Network, nodes: int, folder: Path) -> None:
        self._argv = [sys.executable, "-m", f"determined.launch.{layer}", SCRIPT, layer]
        self._machines = net.machines[:nodes]
        self._run_dirs = [folder / f"run-{layer}-{nodes}-{rank}" for rank in range(nodes)]

    def __call__(self) -> float:
        commands = []
        for rank, (machine, run_dir) in enumerate(zip(self._machines, self._run_dirs, strict=True)):
            subprocess.run(["rm", "-rf", str(run_dir)], check=True)
            (run_dir / "info").mkdir(parents=True)
            facts = {
                "container_addrs": [m.address for m in self._machines],
                "container_rank": rank,
                "container_slot_counts": [2 // len(self._machines)] * len(self._machines),
            }
            (run_dir / "info" / "rendezvous.json").write_text(json.dumps(facts))
            variables = {"DET_RUN_DIR": str(run_dir), "DET_ALLOCATION_KEY": "00" * 32, "C10D_PORT": PORT}
            commands.append((machine, self._argv, environment(variables | {"DTRAIN_SSH_PORT": "29881"})))
        return until_collective(commands)


class Theirs:
    """Runs the launcher's own command lines, as its manual documents them."""

    def __init__(self, layer: str, net: Network, nodes: int, folder: Path, sshd: Sshd) -> None:
        machines = net.machines[:nodes]
        chief = machines[0].address if nodes > 1 else "127.0.0.1"
        ranks_per_node = 2 // nodes
        commands: dict[str, Callable[[int], Sequence[str]]] = {
            "torch_distributed": lambda rank: [
                *("torch.distributed.run", "--nnodes", str(nodes), "--nproc-per-node", str(ranks_per_node)),
                *("--node-rank", str(rank), "--master-addr", chief, "--master-port", PORT),
            ],
            "deepspeed": lambda rank: [
                *("deepspeed.launcher.runner", "--hostfile", str(folder / f"hosts-{nodes}"), "--no_ssh"),
                *("--node_rank", str(rank), "--master_addr", chief, "--master_port", PORT, "--no_local_rank"),
            ],
            "horovod": lambda rank: [
                *("horovod.runner.launch", "--gloo", "-np", "2"),
                *(("-H", "localhost:2") if nodes == 1 else ("-H", ",".join(f"{m.address}:1" for m in machines))),
                *(() if nodes == 1 else ("-p", str(SSH_PORT), "-i", str(sshd.key), "--network-interfaces", "eth0")),
                sys.executable,
            ],
        }
        hosts = [m.address for m in machines] if nodes > 1 else ["127.0.0.1"]
        (folder / f"hosts-{nodes}").write_text("".join(f"{host} slots={ranks_per_node}\n" for host in hosts))
        starters = machines[:1] if layer == "horovod" else machines
        variables = {"HOME": str(folder), "GLOO_SOCKET_IFNAME": "eth0" if nodes > 1 else "lo"}
        self._commands = [
            (machine, [sys.executable, "-m", *commands[layer](rank), SCRIPT, layer], environment(variables))
            for rank, machine in enumerate(starters)
        ]

    def __call__(self) -> float:
        return until_collective(self._commands)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    path = f"{Path(sys.executable).parent}:{inherited['PATH']}"
    return inherited | {"PATH": path, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", **more}


def until_collective(commands: Sequence[tuple[Machine, Sequence[str], Mapping[str, str]]]) -> float:
    """Starts all commands at once. Returns the seconds to the first line that reports the collective. All must succeed."""
    start = time.perf_counter()
    taken: list[float] = []
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [*machine.prefix, *argv], env=dict(environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
            )
            for machine, argv, environ in commands
        ]
        output_lines: list[str] = []

        def listen(process: "subprocess.Popen[bytes]") -> None:
            assert process.stdout is not None
            for line in process.stdout:
                output_lines.append(line.decode(errors="replace"))
                if b"first collective: 2 workers" in line:
                    taken.append(time.perf_counter() - start)

        ears = [threading.Thread(target=listen, args=(process,)) for process in running]
        for ear in ears:
            ear.start()
        for ear in ears:
            ear.join()
    if len(taken) != 2 or any(process.returncode for process in running):
        raise RuntimeError(f"{[p.returncode for p in running]}: {''.join(output_lines)[-1500:]}")
    return min(taken)


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
