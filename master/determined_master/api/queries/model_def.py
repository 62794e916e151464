"""A stored context as the tar.gz in base64 that older clients and tasks read."""

import asyncio
import base64

from determined.context import to_tgz
from determined_master.blobs import Blobs


async def as_tgz(blobs: Blobs, digest: str | None) -> str:
    """Empty where there is no context."""
    if digest is None:
        return ""
    path = blobs.path(digest)
    return await asyncio.to_thread(lambda: base64.b64encode(to_tgz(path.read_bytes())).decode())
