"""Makes the script of a job that runs on this machine: readable bash that runs the job again."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from determined_workflows.batch.job_script import DEFAULT_NODE_SCRATCH, assignments, setup_lines, variables
from determined_workflows.batch.project import Project
from determined_workflows.batch.settings import DISTRIBUTED, JobSettings
from determined_workflows.site_profile import SiteProfile

GRACE_SECONDS = 10
"""Between TERM and KILL for a program that is stopped."""


@dataclass(frozen=True)
class LocalPlan:
    """Everything that the script depends on. ``workdir``: working folder of the program."""

    settings: JobSettings
    project: Project
    record: Path
    nonce: str
    site: SiteProfile
    environment: Path | None
    workdir: Path
    typed_command: str


def text(plan: LocalPlan) -> str:
    """Returns the script. Its runner sets the number of the job, and of the run of a sweep."""
    head = [
        "#!/bin/bash",
        "# Made by `det batch --on local`; `bash` with this file runs the job again.",
        f"# {plan.typed_command}",
    ]
    record = [
        "# Helper programs, the command and the record of this submission.",
        f"export DETENT_RECORD={shlex.quote(str(plan.record))}",
        'name="${DETENT_JOB:-local-$$}${DETENT_ELEMENT:+_${DETENT_ELEMENT}}"',
        'export DETENT_ENDS="${DETENT_RECORD}/ends/${name}"',
        'mkdir -p "${DETENT_ENDS}" && rm -f "${DETENT_ENDS}"/*.json && date +%s > "${DETENT_ENDS}/started"',
    ]
    base = shlex.quote(plan.site.node_scratch or DEFAULT_NODE_SCRATCH)
    seen = [
        "# What the program sees; not the allocation of Slurm in which this may run.",
        'unset "${!SLURM_@}"',
        *assignments(variables(plan.settings, plan.project)),
        'export JOBID="${name//[!0-9_]/}" PYTHONUNBUFFERED=1',
        f'export DETENT_OWN_TMPDIR=1 SLURM_TMPDIR={base}/detent-"${{UID}}/{plan.nonce}-${{name}}"',
    ]
    parts: Sequence[Sequence[str]] = (head, record, seen, _site(plan), _environment(plan), _master(plan), _run(plan))
    return "\n".join("\n".join(lines) + "\n" for lines in parts if lines)


def _site(plan: LocalPlan) -> list[str]:
    site = plan.site
    if not (site.setup or site.environment):
        return []
    return [f"# From {site.source}.", *setup_lines(site), *assignments(site.environment)]


def _environment(plan: LocalPlan) -> list[str]:
    go = [f"cd {shlex.quote(str(plan.workdir))} || exit 1"]
    if plan.environment is None:
        return go
    activate = shlex.quote(str(plan.environment / "bin" / "activate"))
    return ["# The virtual environment.", f"source {activate} || exit 1", *go]


def _master(plan: LocalPlan) -> list[str]:
    if plan.settings.kind != DISTRIBUTED:
        return []
    return [
        "# Where the processes of a distributed program find each other: a free port of this machine.",
        'read -r MASTER_ADDR MASTER_PORT < <(python3 "${DETENT_RECORD}/task/free_port.py" --here)',
        '[ -n "${MASTER_PORT}" ] || exit 1',
        'export MASTER_ADDR MASTER_PORT MASTER_ADDRESS="${MASTER_ADDR}" PORT="${MASTER_PORT}"',
    ]


def _run(plan: LocalPlan) -> list[str]:
    rank = 'python3 "${DETENT_RECORD}/task/run_rank.py"'
    lines = [
        'command="$(cat "${DETENT_RECORD}/command.sh")" || exit 1',
        "printf 'COMMANDS GIVEN: %s\\n' \"${command}\"",
        "# Bash waits for the program before it obeys a signal.",
        "trap : TERM",
        "# The time limit, for all processes of this job.",
        'if [ -n "${DETENT_SECONDS:-}" ]; then',
        "    (",
        '        trap "" TERM; sleep "${DETENT_SECONDS}"',
        f'        echo "det batch: the time limit is over"; kill -TERM 0; sleep {GRACE_SECONDS}; kill -KILL 0',
        "    ) &",
        "fi",
        f"{rank} < /dev/null",
        "code=$?",
        f'[ ! -e "${{SLURM_TMPDIR}}" ] || {rank} --clean',
    ]
    if plan.settings.kind == DISTRIBUTED:
        lines.append("echo FINISHED DISTRIBUTED JOB")
    return [*lines, 'python3 "${DETENT_RECORD}/task/end_job.py" "${code}"', "exit $?"]
