"""A stored context as tar.gz in base64, for older clients and tasks."""

from collections import OrderedDict
from dataclasses import dataclass

from determined.errors import BadRequest, ContextError
from determined_master.data_folder.blobs import Blobs, read_as_tgz
from determined_master.offloading.offloader import Offloader

MAX_CACHED_CHARACTERS = 1 << 20
MAX_CACHED = 32


@dataclass(frozen=True)
class ModelDefs:
    blobs: Blobs
    unpacker: Offloader
    cache: OrderedDict[str, str]
    limit: int
    """Maximum size of an unpacked context in bytes."""

    async def as_tgz(self, digest: str | None) -> str:
        """Returns the context; empty if there is none. Raises BadRequest for one that unpacks to more than the
        limit."""
        if digest is None:
            return ""
        path = self.blobs.path(digest)
        if digest not in self.cache:
            try:
                made = await self.unpacker.run(read_as_tgz, path, self.limit)
            except ContextError as error:
                raise BadRequest(error.message) from None
            if len(made) > MAX_CACHED_CHARACTERS:
                return made
            self.cache[digest] = made
            if len(self.cache) > MAX_CACHED:
                self.cache.popitem(last=False)
        return self.cache[digest]
