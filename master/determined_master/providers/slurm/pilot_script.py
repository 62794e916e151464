"""Makes the batch script of a pilot from its settings. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_NODE_SCRATCH = "/tmp"
ENVIRONMENT = "environment"
"""Name of the file with the variables after the set-up lines, in the pilot's folder."""


@dataclass(frozen=True)
class Pilot:
    """Everything that the script of a pilot depends on."""

    agent_id: str
    pool: str
    program: Sequence[str]
    """The command of ``det-agent``."""
    master: str
    token_file: Path
    folder: Path
    """The pilot's own folder, which the master and the nodes see."""
    without_master_seconds: float
    certificate_options: Sequence[str] = ()
    slots: int | None = None
    """Number of CPU slots; None to offer the job's accelerators."""
    nodes: int = 1
    umask: int = -1
    """That of the tasks; -1 for the one with which Slurm starts the job."""
    node_scratch: str | None = None
    setup: Sequence[str] = ()
    """Lines of bash before the agent, of SITE.yaml."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the tasks, of SITE.yaml."""


def text(pilot: Pilot) -> str:
    """Returns the script."""
    parts = (
        "#!/bin/bash\n"
        f"# Made by Detent: this job is an agent of the pool {pilot.pool}. Its name is {pilot.agent_id}.\n",
        "" if pilot.umask < 0 else f"umask {pilot.umask:04o}\n",
        _setup(pilot),
        _agent(pilot),
    )
    return "\n".join(part for part in parts if part)


def _setup(pilot: Pilot) -> str:
    """Returns the lines that set up the environment of tasks. The agent itself runs in the one before, because a module
    may replace the libraries of its Python; limits that the lines set count for both."""
    if not (pilot.setup or pilot.environment):
        return ""
    file = shlex.quote(str(pilot.folder / ENVIRONMENT))
    lines = [
        "# The set-up of SITE.yaml, for the tasks. A line that fails ends the job.",
        'detent_before="$(export -p)"',
        "set -e",
        *pilot.setup,
        "set +e",
        *(f"export {name}={shlex.quote(value)}" for name, value in pilot.environment.items()),
        f"env -0 > {file} || exit 1",
        'for detent_name in $(compgen -e); do unset "${detent_name}" 2>/dev/null; done',
        'eval "${detent_before}"',
        f"export DET_AGENT_SETUP_ENVIRONMENT={file}",
    ]
    return "\n".join(lines) + "\n"


def _agent(pilot: Pilot) -> str:
    words = [*pilot.program, "--master", pilot.master, "--token-file", str(pilot.token_file)]
    words += [*pilot.certificate_options, "--pool", pilot.pool, "--tasks-as-me"]
    words += [] if pilot.slots is None else ["--slots", str(pilot.slots)]
    scratch = shlex.quote(pilot.node_scratch or DEFAULT_NODE_SCRATCH)
    lines = [
        "# The agent ends with its job, and leaves nothing on the node.",
        'export DET_SLURM_JOB_ID="${SLURM_JOB_ID}" DET_AGENT_PILOT=true',
        f"export DET_AGENT_END_WITHOUT_MASTER_SECONDS={pilot.without_master_seconds:g}",
        f'export DET_PILOT_FOLDER="${{SLURM_TMPDIR:-{scratch}}}/detent-${{UID}}"',
    ]
    name = shlex.quote(pilot.agent_id)
    if pilot.nodes == 1:
        lines.append(f'exec {shlex.join(words)} --id {name} --data "${{DET_PILOT_FOLDER}}/"{name}')
        return "\n".join(lines) + "\n"
    shape = f"--nodes={pilot.nodes} --ntasks={pilot.nodes} --ntasks-per-node=1"
    # One agent that ends does not end the others; TERM waits until the agent handles it.
    run = 'trap "" TERM; id="${DET_PILOT}-${SLURM_NODEID}"; exec "$@" --id "${id}" --data "${DET_PILOT_FOLDER}/${id}"'
    lines += [
        "# Since 22.05 srun does not take --cpus-per-task from sbatch; with --export=NONE it would pass no variables.",
        f'export SRUN_CPUS_PER_TASK="${{SLURM_CPUS_PER_TASK:-1}}" SLURM_EXPORT_ENV=ALL DET_PILOT={name}',
        f"exec srun {shape} --kill-on-bad-exit=0 --wait=0 --input=none \\",
        f"    bash -c {shlex.quote(run)} pilot \\",
        f"    {shlex.join(words)}",
    ]
    return "\n".join(lines) + "\n"
