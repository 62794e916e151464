"""The command line that runs a program in a Singularity or Apptainer image."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from determined.errors import ConfigError
from determined_workflows.batch.command_line import RANK_PROGRAM, CommandLine

RUNTIMES = ("apptainer", "singularity")
FOLDERS = ("/tmp", "/db", "/scratch_storage", "/data")
"""Folders of the machine that programs in the image see, where they exist."""


def runtime(*, may_be_loaded: bool) -> str:
    """Returns the program that runs images. ``may_be_loaded``: set-up lines of the site may add it on the nodes.

    Raises ConfigError if there is none.
    """
    program = next((name for name in RUNTIMES if shutil.which(name)), None)
    if program is None and not may_be_loaded:
        raise ConfigError(
            "--singularity-container needs apptainer or singularity, and this machine has neither; load its module, or "
            "name the module in `setup` of SITE.yaml"
        )
    return program or RUNTIMES[0]


def wrap(line: CommandLine, program: str, image: str, folders: Sequence[Path], *, has_gpus: bool) -> CommandLine:
    """Returns the command line whose program runs in the image. ``folders`` are bound beside those of the machine."""
    present = [name for name in FOLDERS if Path(name).is_dir()]
    binds = ",".join(dict.fromkeys([*present, *map(str, folders)]))
    # The folder of a node's disk is known on the node only.
    prefix = f'{program} exec{" --nv" * has_gpus} --bind {shlex.quote(binds)},"${{SLURM_TMPDIR}}" {shlex.quote(image)}'
    if line.started == "job":
        return CommandLine(line.text.replace(RANK_PROGRAM, f"{RANK_PROGRAM} {prefix}"), "job", line.notes)
    return CommandLine(f"{prefix} bash -c {shlex.quote(line.text)}", line.started, line.notes)
