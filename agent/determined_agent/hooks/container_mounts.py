"""Mounts and devices of a container: its run folder, the checkpoint storage, bind_mounts and devices."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import PRIVATE_RUN, PRIVATE_SHARED_FS, Draft
from determined_agent.hooks.mounts import check_source, storage_folder
from determined_agent.namespaces import Mount

PROPAGATIONS = ("private", "rprivate", "shared", "rshared", "slave", "rslave")


class ContainerMountsHook:
    def __init__(self, allowed: Sequence[Path] | None) -> None:
        """``allowed``: folders of the machine that a configuration may mount, with all below; None for every folder."""
        self._allowed = None if allowed is None else [Path(os.path.realpath(path)) for path in allowed]

    async def do(self, draft: Draft) -> None:
        draft.mounts.append(Mount(str(draft.folder.run), str(PRIVATE_RUN)))
        storage = draft.spec.checkpoint_storage
        source = await asyncio.to_thread(storage_folder, draft)
        if source:
            draft.mounts.append(Mount(source, PRIVATE_SHARED_FS, propagation=storage.get("propagation") or "rprivate"))
        for wanted in draft.spec.bind_mounts:
            draft.mounts.append(await asyncio.to_thread(self._mount, draft, wanted))
        if draft.container is not None:
            devices = tuple(map(_device, draft.spec.devices))
            draft.container = replace(draft.container, devices=(*draft.container.devices, *devices))

    async def undo(self, draft: Draft) -> None:
        """Does nothing: mounts end with the container."""

    def _mount(self, draft: Draft, wanted: Mapping[str, Any]) -> Mount:
        source, target = str(wanted.get("host_path", "")), str(wanted.get("container_path", ""))
        if not os.path.isabs(source):
            raise NotStarted(f"bind_mounts: host_path {source or '(empty)'} is not an absolute path")
        check_source(draft, source)
        if self._allowed is not None:
            # Resolved, so that a link inside an allowed folder leads to nothing else.
            source = os.path.realpath(source)
            if not any(Path(source).is_relative_to(folder) for folder in self._allowed):
                allowed = ", ".join(map(str, self._allowed)) or "none"
                raise NotStarted(
                    f"bind_mounts: the administrator of this agent does not allow {source}; allowed: {allowed}"
                )
        propagation = str(wanted.get("propagation") or "rprivate")
        if propagation not in PROPAGATIONS:
            raise NotStarted(f"bind_mounts: propagation {propagation} is none of {', '.join(PROPAGATIONS)}")
        if not os.path.isabs(target):
            target = str(draft.workdir / target)
        return Mount(source, os.path.normpath(target), bool(wanted.get("read_only", False)), propagation)


def _device(wanted: Mapping[str, Any]) -> str:
    source = str(wanted.get("host_path", ""))
    if not os.path.exists(source):
        raise NotStarted(f"resources.devices: {source or '(empty)'} does not exist on this machine")
    return f"{source}:{wanted.get('container_path') or source}:{wanted.get('mode') or 'mrw'}"
