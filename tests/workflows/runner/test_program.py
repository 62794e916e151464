"""The program ``run`` of the small distribution, apart from its verbs."""

import os
import subprocess
import sys
from pathlib import Path

MAIN = "import sys; from determined_workflows.runner.program import main; sys.exit(main())"
GRID = "resource: [0]\ntemplate: {a: 'true'}\n---\nseed: [1, 2]\n"


def test_a_reader_that_has_closed_the_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(GRID)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "check"],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, "Error" in done.stderr) == (0, False), done.stderr
