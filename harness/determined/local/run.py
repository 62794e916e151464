"""``det experiment create --local``: runs the same configuration and context here without a master."""

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from determined.config import CheckResult, ExperimentConfig, check
from determined.config.diagnostics import Diagnostic
from determined.context import ContextArchive, left_out, pack, unpack
from determined.errors import ConfigError
from determined.local import outputs, plan, python
from determined.local.output import Output, find_failure
from determined.searcher.sampling import first_point
from determined.storage import output_files
from determined_launch import environment

LOCAL_TEST_MODE = "DET_LOCAL_TEST_MODE"
STOP_SECONDS = 5.0
POLL_SECONDS = 0.1
LAST_LINES = 40
"""Last lines of each stream in which a missing file is looked for."""
_KEPT = ("DET_DEBUG", environment.LOG_METRICS)


def run_local(
    text: str,
    *,
    name: str,
    context: Path,
    includes: Sequence[Path] = (),
    test_mode: bool,
    python: str | None = None,
    slots: int | None = None,
    follow_links: bool = False,
    render: Callable[[Sequence[Diagnostic]], str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Returns 0 if the trial succeeded, else 1. Raises ConfigError and ContextError before the trial starts.

    ``slots`` runs the launch layer with that many processes; None runs one process without it. ``render`` returns
    diagnostics of the configuration as text for people.
    """
    if slots is not None and slots < 1:
        raise ConfigError(f"--slots {slots}: a local run needs 1 slot or more")
    with tempfile.TemporaryDirectory(prefix="det-local-") as scratch:
        folder = (
            Path(scratch) / "checkpoints" if test_mode else _data_home(environ) / "detent" / "local" / "checkpoints"
        )
        storage = {"checkpoint_storage": {"type": "directory", "container_path": str(folder)}}
        config = _checked(check(text, name=name, defaults=[storage]), render)
        packed = pack(context, includes, follow_links=follow_links)
        if not test_mode and config.checkpoint_storage.to_json().get("container_path") == str(folder):
            _say(f"checkpoints are stored in {folder}")
        return _run(config, context, packed, Path(scratch), test_mode, python, slots, environ)


def _data_home(environ: Mapping[str, str]) -> Path:
    """Returns the user's folder for data: checkpoints in the working directory would be part of the next context."""
    return Path(environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"))


def _checked(checked: CheckResult, render: Callable[[Sequence[Diagnostic]], str] | None) -> ExperimentConfig:
    if checked.diagnostics:
        _say(render(checked.diagnostics) if render else checked.render())
    if checked.config is None:
        raise ConfigError(f"{checked.name} is invalid")
    return checked.config


def _run(
    config: ExperimentConfig,
    context: Path,
    packed: ContextArchive,
    scratch: Path,
    test_mode: bool,
    named_python: str | None,
    slots: int | None,
    environ: Mapping[str, str],
) -> int:
    for note in packed.notes:
        _say(note)
    workdir = scratch / "context"
    ignored = unpack(packed.data, workdir)
    rng = random.Random(config.reproducibility.experiment_seed)
    hparams = first_point(config.hyperparameters, config.to_json()["searcher"], rng)
    device = "cuda" if os.path.exists("/dev/nvidiactl") else "cpu"
    program = _program(config, device, workdir, named_python, environ)
    planned = plan.make(config.entrypoint, python=program, test_mode=test_mode)
    if slots is not None:
        planned = plan.with_layers(config.entrypoint, planned, python=program)
    seed = rng.randrange(2**31)
    _say(f"hyperparameters: {json.dumps(hparams)}; seed: {seed}")
    for line in [*_remarks(config, planned, workdir, slots), *_mount(config, workdir)]:
        _say(line)
    variables = _variables(config, device, hparams, seed, program, workdir, scratch, test_mode, environ)
    _add_launch_variables(variables, planned, slots, scratch)
    stopped = scratch / "stopped"
    if test_mode and not planned.is_trial:
        variables[environment.STOP_FILE] = str(stopped)
    before = output_files.find(workdir, config.outputs)
    code, failure = _child(planned.argv, variables, workdir, context, stopped, ignored)
    if not test_mode:
        for line in outputs.bring(workdir, config.outputs, before, context):
            _say(line)
    if stopped.exists():
        _say("the script was stopped after its first validation")
        code = 0
    elif code == 0 and environment.STOP_FILE in variables:
        _say("the script ended by itself; it reported no validation, after which the test would have stopped it")
    return _report_end("test" if test_mode else "trial", code, failure)


def _program(
    config: ExperimentConfig, device: str, workdir: Path, named_python: str | None, environ: Mapping[str, str]
) -> str:
    """Returns the Python that runs the trial, with the packages that the configuration asks for."""
    if config.environment.venv is not None and not named_python:
        program = python.make(config.environment.venv, workdir, environ, _say)
    else:
        program = python.choose(named_python, getattr(config.environment.image, device), environ)
    python.check_version(program)
    if config.environment.pip:
        program = python.add_packages(config.environment.pip, program, workdir, environ, _say)
    return program


def _add_launch_variables(variables: dict[str, str], planned: plan.LocalPlan, slots: int | None, scratch: Path) -> None:
    """Adds what depends on how the entrypoint is run, and moves variables that are too long to files."""
    for name in (environment.EXPERIMENT_CONFIG, environment.HPARAMS):
        if environment.is_too_long(name, variables[name]):
            environment.move_to_file(variables, name, scratch)
    if "deepspeed" in planned.stripped:
        variables[environment.USE_DEEPSPEED] = "1"  # one process replaces the workers: the same trials run in it
    if "torch_distributed" in planned.stripped and not planned.is_trial:
        variables.update(_variables_of_one_rank())
    if slots is not None:
        variables[environment.SLOT_IDS] = json.dumps(list(range(slots)))


def _report_end(what: str, code: int, failure: str | None) -> int:
    """Prints how the process ended. Returns 0 if it succeeded, else 1. ``what``: ``test`` or ``trial``."""
    if code == 0:
        _say(f"{what} passed")
        return 0
    reason = f"it was killed by signal {-code}" if code < 0 else f"it exited with code {code}"
    _say(f"{failure}\n{what} failed: {reason}" if failure else f"{what} failed: {reason}")
    return 1


def _remarks(config: ExperimentConfig, planned: plan.LocalPlan, workdir: Path, given_slots: int | None) -> list[str]:
    lines = []
    if planned.stripped:
        lines.append(f"run without the launch layer: {', '.join(planned.stripped)}")
    slots = config.resources.slots_per_trial
    if slots > 1 and given_slots is None and not planned.has_roles:
        lines.append(f"slots_per_trial is {slots}; a local run uses one process (--slots {slots} runs {slots})")
    if (workdir / "startup-hook.sh").exists():
        lines.append("startup-hook.sh is not run in a local run")
    if config.pause is not None and not planned.is_trial:
        lines.append(f"pause: nothing asks a local run to leave; try the script with kill -{config.pause.signal[3:]}")
    return lines


def _mount(config: ExperimentConfig, workdir: Path) -> list[str]:
    """Links the ``bind_mounts`` below the working folder. Returns what is said of those that stay out."""
    lines = []
    for mount in config.bind_mounts:
        target = workdir / mount.container_path
        if not os.path.exists(mount.host_path):
            lines.append(f"bind_mounts: {mount.host_path} does not exist on this machine")
        elif target.is_relative_to(workdir) and ".." not in target.parts:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_symlink() or target.exists():
                lines.append(f"bind_mounts: the context has a file {mount.container_path}, which is used instead")
            else:
                target.symlink_to(mount.host_path)
        elif not target.exists() or not target.samefile(mount.host_path):
            lines.append(f"bind_mounts: {mount.host_path} is not mounted at {mount.container_path} in a local run")
    return lines


def _variables_of_one_rank() -> dict[str, str]:
    """Returns what torchrun gives the only process of a machine, for scripts that call ``init_process_group``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    return {**ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def _variables(
    config: ExperimentConfig,
    device: str,
    hparams: dict[str, Any],
    seed: int,
    program: str,
    workdir: Path,
    scratch: Path,
    test_mode: bool,
    environ: Mapping[str, str],
) -> dict[str, str]:
    own = [each.partition("=") for each in getattr(config.environment.environment_variables, device)]
    result = {key: value for key, value in environ.items() if not key.startswith("DET_") or key in _KEPT}
    result.update({key: value for key, _, value in own if not key.startswith("DET_")})
    result.update(
        {
            environment.EXPERIMENT_CONFIG: json.dumps(config.to_json()),
            environment.HPARAMS: json.dumps(hparams),
            environment.TRIAL_SEED: str(seed),
            environment.LOCAL_RUN: "1",
            environment.WORKDIR: str(workdir),
            environment.PYTHON_EXECUTABLE: program,
            "PYTHONUNBUFFERED": "1",
        }
    )
    if test_mode:
        result[LOCAL_TEST_MODE] = result[environment.TEST_MODE] = "1"
        # Checkpoints of a script without a storage are stored below this; a test leaves no files.
        result["XDG_DATA_HOME"] = str(scratch / "data")
    folder = Path(program).parent
    result["PATH"] = f"{folder}{os.pathsep}{result.get('PATH', os.defpath)}"
    if (folder.parent / "pyvenv.cfg").exists():
        result["VIRTUAL_ENV"] = str(folder.parent)
    paths = [str(python.link_harness(scratch / "harness"))]
    if result.get("PYTHONPATH"):
        paths.append(result["PYTHONPATH"])
    result["PYTHONPATH"] = os.pathsep.join(paths)
    return result


def _child(
    argv: Sequence[str], variables: dict[str, str], workdir: Path, context: Path, stopped: Path, ignored: str
) -> tuple[int, str | None]:
    """Returns the exit code and, if it is known, the line of the user's code that failed.

    ``ignored`` are the lines of ``.detignore``.
    """
    shown = str(context).rstrip("/") or "/"

    def rename(line: str) -> str:
        return line.replace(f"{workdir}/", f"{shown}/")

    out, err = Output(rename), Output(rename)
    try:
        child = subprocess.Popen(argv, cwd=workdir, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        return 127, f"cannot start the entrypoint: {argv[0]}: {error.strerror}"
    assert child.stdout is not None
    assert child.stderr is not None
    other = threading.Thread(target=err.pump, args=(child.stderr, sys.stderr), daemon=True)
    other.start()
    threading.Thread(target=_end_rest, args=(child, stopped), daemon=True).start()
    try:
        out.pump(child.stdout, sys.stdout)
        other.join()
        code = child.wait()
    except KeyboardInterrupt:
        child.wait()  # the terminal has sent the signal to the child as well
        raise
    finally:
        child.stdout.close()
        child.stderr.close()
    if code == 0:
        return 0, None
    last = [line.replace(f"{shown}/", "") for output in (out, err) for line in list(output.last)[-LAST_LINES:]]
    left = left_out.explain(last, workdir, ignored)
    return code, "\n".join(filter(None, (find_failure(err.last, shown), left))) or None


def _end_rest(child: subprocess.Popen[bytes], stopped: Path) -> None:
    """Ends the child if it continues after its chief was stopped: other workers may wait for the chief."""
    while child.poll() is None:
        if stopped.exists():
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.terminate()
            return
        time.sleep(POLL_SECONDS)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
