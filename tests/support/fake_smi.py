"""Scripted ``nvidia-smi`` and ``rocm-smi``: programs in a folder for ``PATH`` that print the text of a test."""

import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PROGRAM = """#!/bin/sh
case "$1" in
  -L) cat "{folder}/list" ;;
  *) cat "{folder}/answer" ;;
esac
exit $(cat "{folder}/code")
"""


@dataclass
class Gpu:
    """A GPU in the output of the program."""

    uuid: str
    bus: str = "00000000:3B:00.0"
    name: str = "NVIDIA H100 80GB HBM3"
    used: str = "4 MiB"
    utilization: str = "0 %"
    uncorrected: str = "0"
    processes: Sequence[tuple[int, str, str]] = ()
    """Process id, type and number of the instance."""
    instances: Sequence[tuple[str, str]] = ()
    """Profile and UUID of each MIG instance. The index is its number."""
    instance_used: str = "12 MiB"
    extra: str = ""

    @property
    def xml(self) -> str:
        processes = "".join(
            f"<process_info><gpu_instance_id>{instance}</gpu_instance_id><compute_instance_id>0</compute_instance_id>"
            f"<pid>{pid}</pid><type>{kind}</type><process_name>train</process_name><used_memory>9 MiB</used_memory>"
            "</process_info>"
            for pid, kind, instance in self.processes
        )
        parts = "".join(
            f"<mig_device><index>{number}</index><gpu_instance_id>{number + 1}</gpu_instance_id>"
            "<compute_instance_id>0</compute_instance_id>"
            f"<fb_memory_usage><used>{self.instance_used}</used></fb_memory_usage></mig_device>"
            for number, _ in enumerate(self.instances)
        )
        return (
            f'<gpu id="{self.bus}"><product_name>{self.name}</product_name><uuid>{self.uuid}</uuid>'
            f"<mig_mode><current_mig>{'Enabled' if self.instances else 'N/A'}</current_mig></mig_mode>"
            f"<mig_devices>{parts or 'None'}</mig_devices>"
            f"<fb_memory_usage><total>81559 MiB</total><used>{self.used}</used></fb_memory_usage>"
            f"<utilization><gpu_util>{self.utilization}</gpu_util></utilization>"
            f"<ecc_errors><volatile><sram_uncorrectable>0</sram_uncorrectable>"
            f"<dram_uncorrectable>{self.uncorrected}</dram_uncorrectable></volatile>"
            "<aggregate><dram_uncorrectable>7</dram_uncorrectable></aggregate></ecc_errors>"
            f"<processes>{processes}</processes>{self.extra}</gpu>"
        )


@dataclass
class FakeSmi:
    """A program of this name in ``folder``, which is put first on ``PATH``."""

    folder: Path
    name: str = "nvidia-smi"
    _data: Path = field(init=False)

    def __post_init__(self) -> None:
        self._data = self.folder / f"{self.name}.data"
        self._data.mkdir(parents=True)
        program = self.folder / self.name
        program.write_text(_PROGRAM.format(folder=self._data))
        program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        self.say("")

    def say(self, text: str, code: int = 0) -> None:
        """Makes the program print this text."""
        (self._data / "answer").write_text(text)
        (self._data / "list").write_text("")
        (self._data / "code").write_text(str(code))

    def fail(self, code: int) -> None:
        """Makes the program print the same text and exit with this code."""
        (self._data / "code").write_text(str(code))

    def show(self, *gpus: Gpu) -> None:
        """Makes the program describe these NVIDIA GPUs."""
        self.say(xml(*gpus))
        lines = []
        for number, gpu in enumerate(gpus):
            lines.append(f"GPU {number}: {gpu.name} (UUID: {gpu.uuid})")
            lines += [f"  MIG {p}     Device  {i}: (UUID: {uuid})" for i, (p, uuid) in enumerate(gpu.instances)]
        (self._data / "list").write_text("\n".join(lines) + "\n")

    def show_cards(self, **cards: dict[str, str]) -> None:
        """Makes the program describe these AMD cards."""
        self.say(json.dumps(cards | {"system": {"Driver version": "6.3.6"}}))


def xml(*gpus: Gpu) -> str:
    body = "".join(gpu.xml for gpu in gpus)
    return f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>{body}</nvidia_smi_log>\n'
