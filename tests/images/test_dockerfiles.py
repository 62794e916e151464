"""The Dockerfiles of the default images, read: that of CPU slots is built and used by other tests, the others cannot be
built without torch for GPUs, and differ from it in few lines only."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from determined_agent.images import DEFAULT_IMAGES

ROOT = Path(__file__).parents[2]
KINDS = sorted(DEFAULT_IMAGES)
# Instructions that a kind has beside those of the image of CPU slots.
OWN = {
    "cpu": set(),
    "cuda": {'RUN /opt/task/bin/python -c "import torch; assert torch.version.cuda, ', "NVIDIA_DRIVER_CAPABILITIES"},
    "rocm": {'RUN /opt/task/bin/python -c "import torch; assert torch.version.hip, '},
}


class Instruction(NamedTuple):
    keyword: str
    value: str


def instructions(kind: str) -> list[Instruction]:
    """The instructions of a Dockerfile, continued lines joined, without comments."""
    text = (ROOT / "images" / kind / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    found = [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines()]
    assert all(each.keyword in ("ARG", "FROM", "COPY", "RUN", "ENV", "CMD") for each in found)
    return found


def without_own(kind: str) -> list[str]:
    """The instructions as lines, without those that this kind alone has."""
    kept = [f"{each.keyword} {each.value}" for each in instructions(kind)]
    kept = [line for line in kept if not any(line.startswith(own) for own in OWN[kind])]
    return [re.sub(r" NVIDIA_DRIVER_CAPABILITIES=\S+", "", line) for line in kept]


def test_every_kind_of_slot_has_a_dockerfile():
    found = {path.parent.name for path in (ROOT / "images").glob("*/Dockerfile")}
    assert found == {*KINDS, "master", "agent"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_image_is_made_in_the_stages_of_the_one_that_is_tested(kind: str):
    assert without_own(kind) == without_own("cpu")
    stages = [each.value for each in instructions(kind) if each.keyword == "FROM"]
    assert stages == ["${BASE} AS build", "${BASE}"], "the wheels stay in the first stage"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_fetched_and_nothing_but_the_wheels_is_installed(kind: str):
    found = instructions(kind)
    runs = " ".join(each.value for each in found if each.keyword == "RUN")
    assert "--no-index --find-links /wheels" in runs
    assert "-c /constraints.txt" in runs
    everything = " ".join(each.value for each in found)
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
    assert [each for each in found if each.keyword == "ARG"] == [Instruction("ARG", "BASE=python:3.11-slim-bookworm")]


@pytest.mark.parametrize("kind", ["cuda", pytest.param("rocm", marks=pytest.mark.long)])
def test_an_image_for_gpus_is_refused_if_its_torch_is_for_something_else(kind: str):
    (check,) = [each.value for each in instructions(kind) if "import torch" in each.value]
    program = re.findall(r'-c "(.*)"', check)[0]
    # The torch of these tests is one for CPUs.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "set DETENT_TORCH_INDEX" in done.stderr


def test_no_image_decides_which_gpus_its_containers_see():
    for kind in KINDS:
        assert not any("VISIBLE_DEVICES" in each.value for each in instructions(kind))


def test_what_is_installed_is_pinned():
    """Each requirement is either exact or has its version in the constraints."""
    argv = [sys.executable, "scripts/image_requirements.py"]
    wanted = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    pins = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().split())
    names = [re.split(r"[<>=]", one)[0].lower() for one in wanted]
    assert {"torch", "numpy", "s3fs", "gcsfs", "adlfs"} <= set(names)
    assert not [name for name in names if name not in pins]
    assert f"torch=={pins['torch']}" in wanted
