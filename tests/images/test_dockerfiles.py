"""The Dockerfiles of the default images, as texts.

Other tests build and use the image of CPU slots. The others need torch for GPUs to be built, and differ from it in
few lines.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from determined_agent.images.image_store import DEFAULT_IMAGES

ROOT = Path(__file__).parents[2]
KINDS = sorted(DEFAULT_IMAGES)
# Instructions of a kind that the image of CPU slots does not have.
OWN = {
    "cpu": set(),
    "cuda": {'RUN /opt/task/bin/python -c "import torch; assert torch.version.cuda, ', "NVIDIA_DRIVER_CAPABILITIES"},
    "rocm": {'RUN /opt/task/bin/python -c "import torch; assert torch.version.hip, '},
}


class Instruction(NamedTuple):
    keyword: str
    value: str


def instructions(kind: str) -> list[Instruction]:
    """Returns the instructions of a Dockerfile, with continued lines joined and without comments."""
    text = (ROOT / "images" / kind / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    parsed = [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines()]
    assert all(instruction.keyword in ("ARG", "FROM", "COPY", "RUN", "ENV", "CMD") for instruction in parsed)
    return parsed


def without_own(kind: str) -> list[str]:
    """Returns the instructions as lines, without those that only this kind has."""
    lines = [f"{instruction.keyword} {instruction.value}" for instruction in instructions(kind)]
    lines = [line for line in lines if not any(line.startswith(own) for own in OWN[kind])]
    return [re.sub(r" NVIDIA_DRIVER_CAPABILITIES=\S+", "", line) for line in lines]


def test_every_kind_of_slot_has_a_dockerfile():
    folders = {path.parent.name for path in (ROOT / "images").glob("*/Dockerfile")}
    assert folders == {*KINDS, "master", "agent"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_image_has_the_instructions_and_stages_of_the_cpu_image(kind: str):
    assert without_own(kind) == without_own("cpu")
    stages = [instruction.value for instruction in instructions(kind) if instruction.keyword == "FROM"]
    assert stages == ["${BASE} AS build", "${BASE}"], "the wheels stay in the first stage"


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_installs_only_the_wheels_and_downloads_no_file(kind: str):
    parsed = instructions(kind)
    runs = " ".join(instruction.value for instruction in parsed if instruction.keyword == "RUN")
    assert "--no-index --find-links /wheels" in runs
    assert "-c /constraints.txt" in runs
    everything = " ".join(instruction.value for instruction in parsed)
    words = set(re.findall(r"[\w.-]+", everything))
    assert not words & {
        "apt-get",
        "apt",
        "curl",
        "wget",
        "git",
        "ssh",
        "sshd",
        "openssh-server",
        "ADD",
        "http",
        "https",
    }
    assert [instruction for instruction in parsed if instruction.keyword == "ARG"] == [
        Instruction("ARG", "BASE=python:3.11-slim-bookworm")
    ]


@pytest.mark.parametrize("kind", ["cuda", pytest.param("rocm", marks=pytest.mark.long)])
def test_the_build_of_a_gpu_image_fails_with_a_torch_for_cpus(kind: str):
    (check,) = [instruction.value for instruction in instructions(kind) if "import torch" in instruction.value]
    program = re.findall(r'-c "(.*)"', check)[0]
    # The torch of these tests is built for CPUs.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "set DETENT_TORCH_INDEX" in done.stderr


def test_no_image_sets_visible_devices():
    for kind in KINDS:
        assert not any("VISIBLE_DEVICES" in instruction.value for instruction in instructions(kind))


def test_every_requirement_of_the_images_is_pinned():
    """Each requirement is exact or has its version in the constraints."""
    argv = [sys.executable, "scripts/image_requirements.py"]
    requirements = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    pins = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().split())
    names = [re.split(r"[<>=]", requirement)[0].lower() for requirement in requirements]
    assert {"torch", "numpy", "s3fs", "gcsfs", "adlfs"} <= set(names)
    assert not [name for name in names if name not in pins]
    assert f"torch=={pins['torch']}" in requirements
