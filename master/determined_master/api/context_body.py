"""Reads the body of a submission with the files of its context. Large bodies are spooled to disk and read by another
process, not on the event loop."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fastapi import Request

from determined.context import from_files
from determined.errors import BadRequest, ContextError
from determined_master.api.json_body import parse_json
from determined_master.api.request_normalizer import camel
from determined_master.data_folder.blobs import Blobs
from determined_master.offloading.offloader import Offloader
from determined_master.offloading.threads import USER_FILES
from determined_master.settings.settings import Settings

SPOOL_ABOVE = 1_000_000
NOTES = "contextNotes"
"""Key of sentences about the files that were sent, which ``read_submission`` adds to the body."""
MAX_NOTES = 20
BODY_LIMIT = 256 * 1024 * 1024


async def read_submission(
    request: Request,
    files_key: str,
    blobs: Blobs,
    offloader: Offloader,
    settings: Settings,
    *,
    rest_limit: int | None = None,
) -> dict[str, Any]:
    """Returns the body without its files, which are stored as one blob named by ``contextHash``.

    ``files_key`` is the key of the official client's list of files; ``rest_limit`` the maximum size of everything else,
    in characters. Raises BadRequest.
    """
    spooled = tempfile.SpooledTemporaryFile(max_size=SPOOL_ABOVE, dir=str(settings.data))  # noqa: SIM115
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > BODY_LIMIT:
                raise BadRequest(f"the request is larger than {BODY_LIMIT} bytes")
            if size > SPOOL_ABOVE:
                await USER_FILES.run(spooled.write, chunk)
            else:
                spooled.write(chunk)
        if size <= SPOOL_ABOVE:
            spooled.seek(0)
            return _digest(spooled.read(), files_key, blobs.folder, settings.context_limit, rest_limit)
        spooled.flush()
        path = f"/proc/{os.getpid()}/fd/{spooled.fileno()}"
        return await offloader.run(_digest_file, path, files_key, blobs.folder, settings.context_limit, rest_limit)
    finally:
        if size > SPOOL_ABOVE:
            await USER_FILES.run(spooled.close)  # to free a large file takes more than ten milliseconds
        else:
            spooled.close()


def _digest_file(path: str, files_key: str, blobs: Path, limit: int, rest_limit: int | None) -> dict[str, Any]:
    """Parses the body in a process of its own, so that it delays no other request."""
    return _digest(Path(path).read_bytes(), files_key, blobs, limit, rest_limit)


def _digest(data: bytes, files_key: str, blobs: Path, limit: int, rest_limit: int | None) -> dict[str, Any]:
    body = parse_json(data or b"{}")
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    body = {camel(str(key)): value for key, value in body.items()}
    files = body.pop(files_key, None)
    body.pop(NOTES, None)
    if files is not None and not isinstance(files, list):
        raise BadRequest(f"{files_key} is not a list")
    if rest_limit is not None and len(data) > rest_limit and len(json.dumps(body)) > rest_limit:
        raise BadRequest(f"the request without its files is larger than {rest_limit:,} characters")
    if files and not body.get("validateOnly"):
        try:
            packed = from_files(files, limit=limit)
        except ContextError as error:
            raise BadRequest(error.message) from error
        body["contextHash"] = Blobs(blobs).keep_bytes(packed.data)
        body[NOTES] = packed.notes[:MAX_NOTES]
    return body
