"""Builds the command of a container: the start-up hooks, if any, then ``determined.exec.run_task``."""

import shlex
from pathlib import Path

from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.settings import task_python_of_agent
from determined_agent.task_process.task_spawn import RUN_TASK
from determined_launch import environment, rendezvous
from determined_launch.atomic_file import write_atomic
from determined_launch.environment import RendezvousFacts

# Run by path instead of PYTHONPATH, so that the task's environment stays unchanged.
_CODE = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    f"runpy.run_module('{RUN_TASK}', run_name='__main__', alter_sys=True)"
)
_HOOK = "startup-hook.sh"


def build_command(plan: ContainerPlan) -> tuple[str, ...]:
    """Returns the argv of a container."""
    python = "python3" if plan.container else str(task_python_of_agent())
    run_task = (python, "-I", "-c", _CODE, str(plan.harness_copy))
    command = with_hooks(plan, run_task)
    if plan.spec.is_alone and command == run_task:
        # Saves the task a request. After hooks it meets at the master, which until then ends it without a checkpoint.
        alone = RendezvousFacts((plan.address,), 0, (len(plan.spec.slots),))
        rendezvous.write(alone, {environment.RUN_DIR: str(plan.folder.run)})
    return command


def program_of(argv: tuple[str, ...]) -> str:
    """Returns the module that a command of ``build_command`` runs by the agent's own Python and no more, or empty."""
    is_plain = len(argv) > 3 and argv[0] == str(task_python_of_agent()) and argv[1:4] == ("-I", "-c", _CODE)
    return RUN_TASK if is_plain else ""


def with_hooks(plan: ContainerPlan, command: tuple[str, ...]) -> tuple[str, ...]:
    """Returns ``command`` after the pool's and the user's hook. Hooks may export variables; a failed hook aborts."""
    sourced = []
    if plan.spec.startup_hook:
        write_atomic(plan.folder.run / "pool-startup-hook.sh", plan.spec.startup_hook)
        sourced.append(plan.run_dir / "pool-startup-hook.sh")
    if (plan.folder.workdir / _HOOK).is_file():
        sourced.append(plan.workdir / _HOOK)
    if not sourced:
        return command
    if plan.bash is None:
        where = f"image {plan.container.image}" if plan.container else "this machine"
        raise NotStarted(f"{sourced[-1].name} needs bash, which is not installed on {where}")
    write_atomic(plan.folder.run / "boot.sh", _script(sourced, plan.workdir, command))
    return (plan.bash, "--noprofile", "--norc", str(plan.run_dir / "boot.sh"))


def _script(sourced: list[Path], workdir: Path, command: tuple[str, ...]) -> str:
    # The place of the command that failed, and not the command: all users may read the log, and it may hold a secret.
    report = 'echo "ERROR: ${BASH_SOURCE[0]##*/}, line $LINENO: exit code $?" >&2'
    lines = [f"trap 'case $- in *e*) {report};; esac' ERR", "set -e -E"]
    lines += [f"source {shlex.quote(str(path))}" for path in sourced]
    # The task does not inherit the options and the folder of the shell.
    lines += [f"set +e +E; trap - ERR; cd {shlex.quote(str(workdir))}", f"exec {shlex.join(command)}"]
    return "\n".join(lines) + "\n"
