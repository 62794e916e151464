"""Runs one job of a Hydra application inside a task: the lines of ``setup``, then the script with its overrides.

It is copied into the context beside ``jobs.json``. The hyperparameter ``hydra.job`` says which job the trial is.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

JOBS = "jobs.json"
HPARAMS = "DET_HPARAMS"
RESULT = "++hydra.callbacks.detent={_target_: det_hydra_result.ReportResult}"
KILL_SECONDS = 30
TIMED_OUT = 124


def main() -> None:
    """Replaces this process by the job, or by a shell that runs it after the lines of ``setup``."""
    folder = Path(__file__).resolve().parent
    jobs = json.loads((folder / JOBS).read_text(encoding="utf-8"))
    number = number_of_job(os.environ)
    os.chdir(folder.parent / jobs["working_folder"])
    imported = [os.path.normpath(folder.parent / each) for each in jobs["import_folders"]]
    paths = [str(folder), *imported, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.stdout.flush()
    if jobs["setup"] or jobs["timeout_min"] is not None:
        os.execvp("bash", ["bash", "-c", script(jobs, number, sys.executable)])
    command = command_of(jobs, number, sys.executable)
    os.execv(command[0], command)


def number_of_job(environ: Mapping[str, str]) -> int:
    """Returns the number of this trial's job.

    It reads what ``determined.get_cluster_info`` reads: importing that would be a tenth of a short job.
    """
    file = environ.get(f"{HPARAMS}_FILE")  # in place of a variable that is too long
    text = environ.get(HPARAMS) or (Path(file).read_text(encoding="utf-8") if file else None)
    if text is None:
        raise SystemExit("run_job.py runs inside a trial of `det hydra run`")
    return int(json.loads(text)["hydra"]["job"])


def command_of(jobs: Mapping[str, Any], number: int, python: str) -> list[str]:
    """Returns the command of a job."""
    started = ["-m", jobs["module"]] if jobs["module"] else [jobs["script"]]
    return [python, *started, *jobs["jobs"][number], RESULT]


def script(jobs: Mapping[str, Any], number: int, python: str) -> str:
    """Returns the shell script of a job.

    >>> jobs = {"script": "train.py", "module": None, "jobs": [["lr=1"]]}
    >>> print(script(jobs | {"setup": ["export A=1"], "timeout_min": None}, 0, "python3"))
    export A=1
    exec python3 train.py lr=1 '++hydra.callbacks.detent={_target_: det_hydra_result.ReportResult}'
    """
    command = shlex.join(command_of(jobs, number, python))
    minutes = jobs["timeout_min"]
    if minutes is None:
        return "\n".join([*jobs["setup"], f"exec {command}"])
    return "\n".join(
        [
            *jobs["setup"],
            f"timeout --kill-after={KILL_SECONDS} {minutes}m {command}",
            "code=$?",
            f'[ $code -ne {TIMED_OUT} ] || echo "the job ran longer than timeout_min={minutes}" >&2',
            "exit $code",
        ]
    )


if __name__ == "__main__":
    main()
