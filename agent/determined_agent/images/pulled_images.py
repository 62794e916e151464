"""The images that this agent pulled and when a task last used them, kept in the agent's data folder."""

import json
import logging
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular

logger = logging.getLogger(__name__)

FILE = "pulled-images.json"
MAX_BYTES = 8 << 20


@dataclass(frozen=True)
class PulledImage:
    """An image by its id. ``names``: those by which tasks asked for it; ``used``: seconds since the epoch."""

    id: str
    names: tuple[str, ...]
    used: float


class PulledImages:
    """Records pulls and uses. Blocking, for any thread; one instance for each data folder."""

    def __init__(self, data: Path) -> None:
        self._file = data / FILE
        self._images = _read(self._file)
        self._lock = threading.Lock()

    @property
    def images(self) -> tuple[PulledImage, ...]:
        """Returns the images that this agent pulled and has not removed."""
        return tuple(self._images.values())

    def add(self, image_id: str, name: str) -> None:
        """Records that this agent pulled an image which the engine did not have."""
        with self._lock:
            before = self._images.get(image_id, PulledImage(image_id, (), 0.0))
            names = tuple(dict.fromkeys((*before.names, name)))
            self._keep(replace(before, names=names, used=time.time()))

    def use(self, image_id: str) -> None:
        """Records a use; does nothing for an image that this agent did not pull."""
        with self._lock:
            if image_id in self._images:
                self._keep(replace(self._images[image_id], used=time.time()))

    def forget(self, image_id: str) -> None:
        """Removes the record of an image."""
        with self._lock:
            if self._images.pop(image_id, None) is not None:
                self._write()

    def _keep(self, image: PulledImage) -> None:
        self._images[image.id] = image
        self._write()

    def _write(self) -> None:
        write_atomic(self._file, json.dumps([asdict(image) for image in self._images.values()]))


def _read(path: Path) -> dict[str, PulledImage]:
    try:
        stored = json.loads(read_regular(path, MAX_BYTES))
        images = [PulledImage(str(one["id"]), tuple(map(str, one["names"])), float(one["used"])) for one in stored]
        return {image.id: image for image in images}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as problem:
        # Without the record the images stay: they are the engine's to keep.
        logger.warning("images that were pulled earlier are kept, because %s cannot be read: %s", path, problem)
        return {}
