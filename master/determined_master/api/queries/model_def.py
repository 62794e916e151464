"""A stored context as tar.gz in base64, for older clients and tasks."""

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
