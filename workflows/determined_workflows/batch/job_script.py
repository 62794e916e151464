"""Makes the script of a job from its settings: readable bash that ``sbatch`` runs again."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from determined_workflows.batch.command_line import CommandLine
from determined_workflows.batch.project import Project
from determined_workflows.batch.sbatch_options import Option
from determined_workflows.batch.settings import DISTRIBUTED, JobSettings
from determined_workflows.site_profile import SiteProfile

DEFAULT_NODE_SCRATCH = "/tmp"
CLEANING_SECONDS = 60


@dataclass(frozen=True)
class JobPlan:
    """Everything that the script of a job depends on."""

    settings: JobSettings
    project: Project
    record: Path
    line: CommandLine
    tasks_per_node: int
    options: Sequence[Option]
    comment: str
    site: SiteProfile
    environment: Path | None
    workdir: Path
    array: str | None
    typed_command: str


def text(plan: JobPlan) -> str:
    """Returns the script."""
    parts = (
        _head(plan),
        "# Helper programs, the command and the record of this submission.\n"
        f"export DETENT_RECORD={shlex.quote(str(plan.record))}\n"
        'DETENT_JOB="${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}}"\n'
        'export DETENT_ENDS="${DETENT_RECORD}/ends/${DETENT_JOB:-${SLURM_JOB_ID}}"\n'
        'mkdir -p "${DETENT_ENDS}" && rm -f "${DETENT_ENDS}"/*.json "${DETENT_ENDS}/slurm_state"\n'
        'echo "$(date +%s) ${SLURM_JOB_NODELIST}" > "${DETENT_ENDS}/started"\n',
        "# What the program sees.\n" + _exports(plan),
        _site(plan.site),
        _environment(plan),
        _master(plan),
        _run(plan),
    )
    return "\n".join(part for part in parts if part)


def _head(plan: JobPlan) -> str:
    options = [*(option.text for option in plan.options if option.is_for_script), f"--comment={plan.comment}"]
    if plan.array:
        options.append(f"--array={plan.array}")
    lines = [
        "#!/bin/bash",
        "# Made by `det batch`; `sbatch` with this file runs the job again.",
        f"# {plan.typed_command}",
        *(f"#SBATCH {option}" for option in options),
    ]
    return "\n".join(lines) + "\n"


def _exports(plan: JobPlan) -> str:
    values = variables(plan.settings, plan.project)
    lines = [*assignments(values), 'export JOBID="${SLURM_JOB_ID}"', "export PYTHONUNBUFFERED=1"]
    # Since 22.05 srun does not take --cpus-per-task from sbatch; with --export=NONE it would pass none of these.
    lines.append('export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}" SLURM_EXPORT_ENV=ALL SLURM_KILL_BAD_EXIT=1')
    return "\n".join([*lines, *_node_folder(plan.site)]) + "\n"


def variables(settings: JobSettings, project: Project) -> dict[str, str]:
    """Returns what the program sees on every target."""
    return {
        "source_dir": str(project.root),
        "project_name": project.name,
        "scratch_dir": str(project.scratch_dir),
        "exp_name": settings.exp_name,
        "which_distributed": settings.launcher or "",
        "singularity_container": settings.container or "",
        "NNODES": str(settings.nodes),
        "NUM_TRAINERS": str(settings.gpus or 1),
    }


def assignments(values: Mapping[str, str]) -> list[str]:
    """Returns the lines that set variables of the program."""
    return [f"export {name}={shlex.quote(value)}" for name, value in values.items()]


def _node_folder(site: SiteProfile) -> list[str]:
    base = shlex.quote(site.node_scratch or DEFAULT_NODE_SCRATCH)
    return [
        "# That of a job which has submitted this one is not this one's.",
        '[ -z "${DETENT_OWN_TMPDIR:-}" ] || unset SLURM_TMPDIR DETENT_OWN_TMPDIR',
        'if [ -z "${SLURM_TMPDIR:-}" ]; then',
        f"    # A folder on the disk of each node, removed with the job.\n"
        f'    export DETENT_OWN_TMPDIR=1 SLURM_TMPDIR={base}/detent-"${{UID}}/${{SLURM_JOB_ID}}"',
        "fi",
    ]


def _site(site: SiteProfile) -> str:
    if not (site.setup or site.environment):
        return ""
    lines = [f"# From {site.source}.", *setup_lines(site), *assignments(site.environment)]
    return "\n".join(lines) + "\n"


def setup_lines(site: SiteProfile) -> list[str]:
    """Returns the site's lines, one of which that fails ends the job: it would train without its module."""
    return ["set -e", *site.setup, "set +e"] if site.setup else []


def _environment(plan: JobPlan) -> str:
    go = f"cd {shlex.quote(str(plan.workdir))} || exit 1\n"
    if plan.environment is None:
        return go
    activate = shlex.quote(str(plan.environment / "bin" / "activate"))
    return f"# The virtual environment.\nsource {activate} || exit 1\n{go}"


def _master(plan: JobPlan) -> str:
    if plan.settings.kind != DISTRIBUTED:
        return ""
    return (
        "# Address and a free port of the first node, which runs this script.\n"
        'read -r MASTER_ADDR MASTER_PORT < <(python3 "${DETENT_RECORD}/task/free_port.py")\n'
        '[ -n "${MASTER_PORT}" ] || exit 1\n'
        'export MASTER_ADDR MASTER_PORT MASTER_ADDRESS="${MASTER_ADDR}" PORT="${MASTER_PORT}"\n'
    )


def _run(plan: JobPlan) -> str:
    settings = plan.settings
    rank = 'python3 "${DETENT_RECORD}/task/run_rank.py"'
    lines = [
        'command="$(cat "${DETENT_RECORD}/command.sh")" || exit 1',
        f"printf 'COMMANDS GIVEN: %s\\n' {shlex.quote(plan.line.shown)}",
        "# Bash waits for the steps before it obeys a signal.",
        "trap : TERM USR1",
    ]
    if plan.line.started == "job":
        lines.append('bash -c "${command}" command')
    else:
        shape = f"--nodes={settings.nodes} --ntasks={settings.nodes * plan.tasks_per_node}"
        lines.append(f"srun {shape} --ntasks-per-node={plan.tasks_per_node} --input=none {rank}")
    lines.append("code=$?")
    if settings.nodes == 1:
        lines.append(f'[ ! -e "${{SLURM_TMPDIR}}" ] || {rank} --clean')
    else:
        shape = f"--nodes={settings.nodes} --ntasks={settings.nodes} --ntasks-per-node=1"
        # A step that cannot start, on a node that has failed, does not keep the job.
        lines.append(f"timeout {CLEANING_SECONDS} srun {shape} --input=none {rank} --clean")
    if settings.kind == DISTRIBUTED:
        lines.append("echo FINISHED DISTRIBUTED JOB")
    flag = " --requeue" if settings.is_requeued else ""
    lines += [f'python3 "${{DETENT_RECORD}}/task/end_job.py" "${{code}}"{flag}', "exit $?"]
    return "\n".join(lines) + "\n"
