"""A launch layer in a Python without the layer's framework."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("layer", ["horovod", "deepspeed", "torch_distributed"])
def test_a_framework_that_is_not_installed_is_named(tmp_path, layer):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    done = subprocess.run(
        [bare / "bin" / "python", "-m", f"determined.launch.{layer}", "train.py"],
        env={
            **environment,
            "PYTHONPATH": f"{ROOT / 'launch'}{os.pathsep}{ROOT / 'harness'}",
            "DET_RUN_DIR": str(tmp_path),
        },
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
    )
    assert done.returncode == 1
    name = layer.partition("_")[0]
    assert f"{name} is not installed" in done.stdout or (layer == "deepspeed" and "torch is not" in done.stdout)
    assert "image" in done.stdout
