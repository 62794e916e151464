"""Commands of ``det dev``."""

import os
import shutil
import subprocess
from argparse import Namespace

from determined.errors import BadRequest
from determined_cli import connection


def curl(args: Namespace) -> int:
    """Runs curl against the master and returns its exit code.

    curl reads the sign-in from a pipe: other users of the machine can read the arguments of a process.
    """
    program = shutil.which("curl")
    if program is None:
        raise BadRequest("curl is not installed")
    if not args.path.startswith("/"):
        raise BadRequest(f'"{args.path}" is not a path of the API; use the form /api/v1/me')
    session = connection.connect(args.options)
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "w", encoding="utf-8") as config:
            config.writelines(f'header = "{name}: {value}"\n' for name, value in session.headers.items())
        url = f"{session.master.rstrip('/')}{args.path}"
        words = [program, "--silent", "--show-error", "--config", f"/dev/fd/{reader}", url, *args.arguments]
        return subprocess.run(words, pass_fds=(reader,), check=False).returncode
    finally:
        os.close(reader)
