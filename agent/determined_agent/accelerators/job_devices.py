"""Chooses the devices of a machine that belong to a job: without a device cgroup a program sees those of others too."""

from collections.abc import Mapping, Sequence

from determined.errors import DeterminedError
from determined_agent.accelerators.device import Device

_VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "ROCR_VISIBLE_DEVICES"}
_OF_SLURM = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
_NONE = ("", "-1", "NoDevFiles", "void", "none")


def devices_of_job(devices: Sequence[Device], variables: Mapping[str, str]) -> list[Device]:
    """Returns the devices of a job, none if it has none.

    Parameters:
        devices: all that are visible, in the order of their numbers.
        variables: those with which Slurm names the devices of the job.

    Raises DeterminedError for a device that is not among ``devices``.
    """
    if not devices:
        return []
    name = _VISIBLE[devices[0].type]
    if name in variables:
        return [_device(devices, word, name) for word in _words(variables[name])]
    for name in _OF_SLURM:
        words = _words(variables.get(name, ""))
        if words:
            # Slurm's numbers are those of the node. Inside a device cgroup the job sees its own alone.
            return list(devices) if len(words) == len(devices) else [_device(devices, word, name) for word in words]
    return []


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip() not in _NONE]


def _device(devices: Sequence[Device], word: str, variable: str) -> Device:
    if word.isdecimal() and len(word) < 6:
        if int(word) < len(devices):
            return devices[int(word)]
    else:
        found = [device for device in devices if device.uuid.startswith(word)]
        if len(found) == 1:
            return found[0]
    raise DeterminedError(f"{variable} of this job names the device {word}, which is not found on this machine")
