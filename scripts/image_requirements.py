"""Prints what an image holds: ``image_requirements.py [KIND]``, KIND as in ``images.sh``.

The default images of tasks hold the task base of processes, torch, and libraries of object stores.
"""

import sys
import tomllib
from pathlib import Path

EXTRAS = ("pytorch", "tasks")
OBJECT_STORES = ("s3fs", "gcsfs", "adlfs")
PROGRAMS = {"master": "detent-cluster[postgres,s3,gcs,azure]", "agent": "detent-cluster[docker,ssh]"}


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    if kind in PROGRAMS:
        print(PROGRAMS[kind])
        return
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {each for extra in EXTRAS for each in project["optional-dependencies"][extra]}
    print("\n".join(sorted(wanted | set(OBJECT_STORES))))


if __name__ == "__main__":
    main()
