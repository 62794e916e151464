"""The files that ``det batch init`` writes into a project."""

from pathlib import Path

from determined_workflows import example_files
from determined_workflows.batch.command_file import FILE_NAME
from determined_workflows.batch.project import FILES_FOLDER
from determined_workflows.batch.sweep import FILE_NAME as SWEEP_FILE

SUBMITTER = "job_submitter.sh"
_SUBMITTER = """\
#!/bin/bash
# Submits a job of this project to Slurm. `bash job_submitter.sh --help` lists the flags.
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)" || exit 1
exec det batch submit --project "${folder}/.." "$@"
"""
_COMMAND = """\
# The command of the job. Lines that begin with # and blank lines are left out; the others are one command, with or
# without a backslash at the end of a line. Bash on the node reads it.
#
#   a standard job:                          python main.py --train --batch_size 6
#   several nodes (-j distributed -W …):     python main.py --train
#   a sweep (-j sweep):                      wandb agent --count 1 USER/PROJECT/SWEEP_ID
#
# Variables: ${source_dir} ${scratch_dir} ${project_name} ${exp_name} ${NNODES} ${NUM_TRAINERS} ${JOBID} ${SLURM_TMPDIR}
# and in distributed jobs ${MASTER_ADDR} ${MASTER_PORT}.

python main.py --train --batch_size 6
"""
_SWEEP = """\
# A sweep of Weights & Biases: `wandb sweep hpc_files/sweeper.yml` prints its id, `bash job_submitter.sh -j sweep` asks
# for it. This grid has 2 x 2 = 4 runs.
program: main.py
method: grid
metric:
  name: loss
  goal: minimize
parameters:
  batch_size:
    values: [6, 12]
  learning_rate:
    values: [0.1, 0.01]
command:
  - ${env}
  - python
  - ${program}
  - ${args}
"""
FILES = {SUBMITTER: _SUBMITTER, FILE_NAME: _COMMAND, SWEEP_FILE: _SWEEP}


def init(root: Path) -> Path:
    """Writes the files into ``hpc_files`` of a project and returns that folder. Raises Conflict if one exists."""
    folder = root / FILES_FOLDER
    example_files.write(folder, FILES)
    (folder / SUBMITTER).chmod(0o755)
    return folder
