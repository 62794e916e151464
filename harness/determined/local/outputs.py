"""Brings the ``outputs`` of a local run from its temporary work folder to the folder that it was started with."""

import os
from collections.abc import Sequence
from pathlib import Path

from determined.errors import StorageError
from determined.storage.directory import copy
from determined.storage.output_files import OutputFiles, find, refuse_links


def bring(workdir: Path, folders: Sequence[str], before: OutputFiles, context: Path) -> list[str]:
    """Copies what the run has written or changed. Returns lines that say what was copied and what was left out.

    Args:
        workdir: the work folder of the run.
        folders: the outputs that the configuration names.
        before: what was in them before the run.
        context: the folder to copy into; a file of the same name is replaced.
    """
    try:
        found = find(workdir, folders)
        new = sorted(name for name, facts in found.files.items() if before.files.get(name) != facts)
        links = {name: target for name, target in found.links.items() if not os.path.lexists(context / name)}
        refuse_links(context, [*new, *links])
        for name in new:
            copy(workdir / name, context / name)
        for name, target in links.items():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            (context / name).symlink_to(target)
    except (StorageError, OSError) as error:
        return [f"outputs: not all could be copied to {context}: {error}"]
    left_out = [f"outputs: not copied: {sentence}" for sentence in found.described_left_out()]
    files = "1 file" if len(new) == 1 else f"{len(new):,} files"
    return [*left_out, f"outputs: {files} copied to {context}"] if new or links else left_out
