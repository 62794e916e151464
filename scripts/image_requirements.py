"""Prints what the default images of tasks hold: the task base of processes, torch, and libraries of object stores."""

import tomllib
from pathlib import Path

EXTRAS = ("pytorch", "tasks")
OBJECT_STORES = ("s3fs", "gcsfs", "adlfs")


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {each for extra in EXTRAS for each in project["optional-dependencies"][extra]}
    print("\n".join(sorted(wanted | set(OBJECT_STORES))))


if __name__ == "__main__":
    main()
