"""A stored context as tar.gz in base64, for older clients and tasks."""

from collections import OrderedDict

from determined.errors import BadRequest, ContextError
from determined_master.blobs import read_as_tgz
from determined_master.services import Services

MAX_CACHED_CHARACTERS = 1 << 20
MAX_CACHED = 32


async def as_tgz(services: Services, digest: str | None) -> str:
    """Returns the context; empty if there is none. Raises BadRequest for one that unpacks to more than the limit."""
    if digest is None:
        return ""
    path = services.blobs.path(digest)
    cache: OrderedDict[str, str] = services.model_defs
    if digest not in cache:
        try:
            made = await services.unpacker.run(read_as_tgz, path, services.settings.unpacked_limit)
        except ContextError as error:
            raise BadRequest(error.message) from None
        if len(made) > MAX_CACHED_CHARACTERS:
            return made
        cache[digest] = made
        if len(cache) > MAX_CACHED:
            cache.popitem(last=False)
    return cache[digest]
