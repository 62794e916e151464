"""``det up --pool slurm[:PARTITION]``: a master on a login node whose agents are jobs of Slurm.

Everything that it adds to the settings goes to the master as variables, so that the lines of a settings file stay those
that its author wrote.
"""

import ipaddress
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from determined.client import certificates
from determined.errors import DeterminedError
from determined_cli.up import data_folder
from determined_cli.up.supervisor import python
from determined_launch import interfaces
from determined_workflows.batch import partitions

NAME = "slurm"
MAX_JOBS = 8
"""Agents of the pool; a settings file may say more."""
SLURM_SECONDS = 20.0
LOOPBACK = "127.0.0.1"
ALL = ("0.0.0.0", "::")
_POOL = re.compile(r"slurm(?::(?P<partition>[A-Za-z0-9_.,-]+))?")
_GPUS = re.compile(r"gres/gpu\b")

Run = Callable[[Sequence[str]], str]
"""Runs a program of Slurm and returns its output; raises Unfit if it fails."""


class Unfit(DeterminedError):
    """A cluster whose agents are jobs of Slurm cannot be started like this."""

    exit_code = 2


@dataclass(frozen=True)
class SlurmPool:
    """What ``det up`` adds to the settings of the master, and how it listens."""

    partition: str
    slots: int
    has_gpus: bool
    host: str
    checkpoints: Path | None
    """Folder for checkpoints that the nodes see too; None where a settings file names a storage."""

    def variables(self) -> dict[str, str]:
        """Returns the settings as variables of the master."""
        sbatch: dict[str, Any] = {"partition": self.partition} if self.partition else {}
        if self.has_gpus:
            sbatch["gpus-per-node"] = self.slots
        provider = {"type": NAME, "max_agents": MAX_JOBS, "slots_per_agent": self.slots, "sbatch": sbatch}
        values = {
            "DET_MASTER_RESOURCE_POOLS": json.dumps([{"pool_name": NAME, "provider": provider}]),
            "DET_MASTER_DEFAULT_POOL": NAME,
        }
        if self.checkpoints is not None:
            storage = {"type": "shared_fs", "host_path": str(self.checkpoints)}
            values["DET_MASTER_CHECKPOINT_STORAGE"] = json.dumps(storage)
        return values

    def lines(self) -> list[str]:
        """Returns what the pool is, who pays for it, and where checkpoints go."""
        me, unit = _account(), "GPU" if self.has_gpus else "CPU slot"
        place = f"partition {self.partition}" if self.partition else "the default partition"
        each = f"{self.slots} {unit}{'' if self.slots == 1 else 's'}"
        lines = [
            f"pool {NAME}: agents are jobs of Slurm in {place} with {each} each, at most {MAX_JOBS} at a time",
            f"they run as, and are charged to, {me}; work of users other than admins is refused in this pool, unless a "
            "settings file (--config) has the pool with share_account: true",
        ]
        if self.checkpoints is not None:
            lines.append(f"checkpoints are stored in {self.checkpoints}, which the nodes must see at the same path")
        return lines


def of(args: Namespace, environ: Mapping[str, str], *, run: "Run | None" = None) -> SlurmPool:
    """Returns the pool that ``--pool`` names. Raises Unfit, which says what to do."""
    match = _POOL.fullmatch(args.pool)
    if match is None:
        raise Unfit(f"--pool {args.pool}: write slurm, or slurm:PARTITION")
    for name, flag in (("container_runtime", "--container-runtime"), ("task_python", "--task-python")):
        if getattr(args, name):
            raise Unfit(f"{flag} is for an agent on this machine, and with --pool {args.pool} there is none")
    own = settings_of(args.config, environ)
    for name in ("resource_pools", "default_pool"):
        if name in own:
            raise Unfit(f"--pool {args.pool} and {name} of the master's settings both say the pools; leave one out")
    host = address_of(args.host or str(own.get("host") or LOOPBACK), interfaces.all_addresses())
    if (problem := unreachable(host, interfaces.all_addresses())) is not None:
        raise Unfit(f"--pool {args.pool}: {problem}")
    partition, has_gpus = _partition(match["partition"] or "", run or _ask_slurm)
    checkpoints = None if "checkpoint_storage" in own else data_folder.default(environ) / "checkpoints"
    slots = 1 if args.slots is None else args.slots
    if slots < 1:
        raise Unfit(f"--slots {slots}: a job of Slurm has 1 slot or more")
    return SlurmPool(partition, slots, has_gpus, host, checkpoints)


def settings_of(config: str | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """Returns the settings that the file and the variables give, unchecked: the master names what is wrong."""
    file = config or environ.get("DET_MASTER_CONFIG")
    try:
        loaded = yaml.safe_load(Path(file).expanduser().read_text(encoding="utf-8")) if file else None
    except (OSError, ValueError, yaml.YAMLError):
        loaded = None
    prefix = "DET_MASTER_"
    above = {name.removeprefix(prefix).lower(): value for name, value in environ.items() if name.startswith(prefix)}
    return (loaded if isinstance(loaded, dict) else {}) | {name: value for name, value in above.items() if value}


def address_of(host: str, addresses: Sequence[tuple[str, str]]) -> str:
    """Returns the first address of the interface ``host``, and any other text as it is.

    >>> address_of("ib0", [("lo", "127.0.0.1"), ("ib0", "10.1.0.7")])
    '10.1.0.7'
    """
    return next((address for name, address in addresses if name == host), host)


def unreachable(host: str, addresses: Sequence[tuple[str, str]]) -> str | None:
    """Returns why the nodes of Slurm do not reach a master that listens on ``host``, with the addresses they may."""
    if not _is_loopback(host):
        return None
    others = [f"--host {address} ({name})" for name, address in addresses if not _is_local(address)]
    listed = "; ".join(others) or "this machine has no other address"
    return f"the nodes of Slurm cannot reach {host}. Listen on an address of this machine: {listed}"


def certificate(folder: Path, host: str, own: Mapping[str, Any], now: datetime | None = None) -> dict[str, str]:
    """Returns the variables for a certificate of this master, which is made once and pinned by its agents.

    Nothing where the settings have one. A certificate that does not name ``host``, or is over, is replaced.
    """
    if own.get("tls_cert"):
        return {}
    target = folder / "certificate"
    pair = target / "master.crt", target / "master.key"
    name = socket.gethostname() if host in ALL else host
    if not (pair[0].exists() and pair[1].exists() and _is_valid(pair[0], name, now or datetime.now(UTC))):
        shutil.rmtree(target, ignore_errors=True)
        argv = [*python("determined_master", "make-certificate", "--name", name, str(target))]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unfit(f"cannot make a certificate: {done.stderr.strip()}")
    return {"DET_MASTER_TLS_CERT": str(pair[0]), "DET_MASTER_TLS_KEY": str(pair[1])}


def _is_valid(file: Path, name: str, now: datetime) -> bool:
    from cryptography import x509  # not loaded by other commands

    try:
        pem = file.read_text()
        end = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
        return now < end and name in certificates.names(pem)
    except ValueError:
        return False


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_local(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback or ipaddress.ip_address(address).is_link_local


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _partition(wanted: str, run: Run) -> tuple[str, bool]:
    """Returns the partition, and whether its nodes have GPUs. Raises Unfit if no job of it would start."""
    text = run(["scontrol", "--oneliner", "show", "partition"])
    known = partitions.parse(text)
    problem = partitions.problem(known, wanted or None, None)
    if problem is not None:
        raise Unfit(problem.replace("--partition", "--pool slurm:PARTITION"))
    chosen = wanted.split(",")[0] or next(each.name for each in known if each.is_default)
    line = next(each for each in text.splitlines() if f"PartitionName={chosen} " in f"{each} ")
    return wanted, _GPUS.search(line) is not None


def _ask_slurm(argv: Sequence[str]) -> str:
    for program in ("sbatch", argv[0]):
        if shutil.which(program) is None:
            raise Unfit(f"{program} is not on PATH: det up --pool slurm runs on a login node of Slurm")
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=SLURM_SECONDS, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except subprocess.TimeoutExpired:
        raise Unfit(f"Slurm did not answer {argv[0]} within {SLURM_SECONDS:g} s; try again when it does") from None
    if done.returncode:
        raise Unfit(f"{argv[0]} failed: {done.stderr.strip() or f'exit {done.returncode}'}")
    return done.stdout
