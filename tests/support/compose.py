"""Runs the repository's docker-compose files with images that are built from this checkout."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.container_engine import BASE_IMAGE, ROOT, has_image, make_image
from tests.support.waiting import wait_until

from determined_launch.version import DETENT_VERSION

POSTGRES_IMAGE = "detent-test:postgres"
MASTER_IMAGE, AGENT_IMAGE = f"detent/master:{DETENT_VERSION}", f"detent/agent:{DETENT_VERSION}"
_ENTRYPOINT = r"""#!/bin/sh
# As the image postgres:16 does: makes the database of POSTGRES_DB once, then serves.
set -e
bin=/usr/lib/postgresql/15/bin
data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
    chown postgres $data
    echo "$POSTGRES_PASSWORD" >/tmp/password
    runuser -u postgres -- $bin/initdb -D $data -U "$POSTGRES_USER" -A scram-sha-256 --pwfile=/tmp/password -E UTF8
    rm /tmp/password
    echo "host all all all scram-sha-256" >>$data/pg_hba.conf
    echo "CREATE DATABASE $POSTGRES_DB" | runuser -u postgres -- $bin/postgres --single -D $data postgres
fi
exec runuser -u postgres -- $bin/postgres -D $data -c "listen_addresses=*"
"""


def need_images() -> None:
    """Builds the images of the master and the agent from this checkout, and a replacement for ``postgres:16``."""
    if subprocess.run(["docker-compose", "--version"], check=False, capture_output=True).returncode:
        pytest.skip("this machine has no docker-compose: make container-engine adds it")
    environment = {**os.environ, "DETENT_BASE_IMAGE": BASE_IMAGE}
    subprocess.run(["sh", "scripts/images.sh", sys.prefix, "master", "agent"], cwd=ROOT, check=True, env=environment)
    if not has_image(POSTGRES_IMAGE):
        lines = "".join(f"{line}\\n" for line in _ENTRYPOINT.replace("\\", "\\\\").replace("'", "'\\''").splitlines())
        make_image(
            POSTGRES_IMAGE,
            "RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "
            "postgresql-15 && rm -rf /var/lib/apt/lists/*",
            f"RUN printf '{lines}' > /entrypoint && chmod 755 /entrypoint",
            "ENV PATH=/usr/lib/postgresql/15/bin:$PATH",
            'CMD ["/entrypoint"]',
        )


class Compose:
    """A docker-compose project.

    Parameters:
        variables: content of the user's ``.env``.
        files: compose files; relative names are relative to the repository.
        engine: address of the engine; empty for the engine of this machine.
    """

    def __init__(self, project: str, variables: Mapping[str, str], *files: Path | str, engine: str = "") -> None:
        file_options = [word for file in files for word in ("--file", str(ROOT / file))]
        self._argv = ["docker-compose", "--project-name", project, *file_options]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "DETENT_"))}
        self.environment = inherited | dict(variables) | ({"DOCKER_HOST": engine} if engine else {})

    def __call__(self, *words: str) -> str:
        """Runs docker-compose and returns its output. Raises AssertionError if it fails."""
        done = subprocess.run(
            [*self._argv, *words], env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"docker-compose {words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def docker(self, *words: str) -> str:
        argv = ["docker", *words]
        return subprocess.run(argv, env=self.environment, check=True, capture_output=True, text=True).stdout

    def container(self, service: str) -> str:
        return self("ps", "--quiet", service).strip()

    def kill(self, service: str) -> None:
        """Kills a service's program with SIGKILL, as a crash does, and waits until the engine has started it again."""
        container = self.container(service)
        before = self.docker("inspect", "--format", "{{.State.Pid}}", container).strip()
        os.kill(int(before), 9)

        def again() -> bool:
            state = self.docker("inspect", "--format", "{{.State.Running}} {{.State.Pid}}", container).split()
            return state[0] == "true" and state[1] not in (before, "0")

        wait_until(again, what=f"the engine has started {service} again")

    def down(self) -> None:
        subprocess.run([*self._argv, "down", "--volumes"], env=self.environment, check=False, capture_output=True)
