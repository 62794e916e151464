"""Gives the user of a container an account in it, because many libraries ask for the user's name."""

import io
import tarfile
from functools import partial
from typing import TYPE_CHECKING

from determined_agent.drivers.engine import Engine, NoSuchObject
from determined_agent.host_access.accounts import GROUP, PASSWD, with_group, with_user
from determined_agent.task_process.identity import Identity

if TYPE_CHECKING:
    from docker import APIClient

MAX_BYTES = 1 << 20


async def add_account(engine: Engine, name: str, identity: Identity) -> None:
    """Adds the user and group to a container that was created and has not started. Raises EngineError."""
    texts = {
        PASSWD.name: with_user(await _read(engine, name, str(PASSWD)), identity),
        GROUP.name: with_group(await _read(engine, name, str(GROUP)), identity),
    }
    archive = _packed(texts)
    await engine.call(lambda api: api.put_archive(name, str(PASSWD.parent), archive))


def _packed(texts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file, text in texts.items():
            data = text.encode("utf-8", "surrogateescape")
            member = tarfile.TarInfo(file)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


async def _read(engine: Engine, name: str, path: str) -> str:
    """Returns the text of a file of the container; empty if there is none, or none that is plain and small."""
    try:
        data = await engine.call(partial(_archive, name=name, path=path))
    except NoSuchObject:
        return ""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            member = archive.next()
            file = archive.extractfile(member) if member is not None else None
            return file.read().decode("utf-8", "surrogateescape") if file else ""
    except (tarfile.TarError, KeyError):
        return ""


def _archive(api: "APIClient", name: str, path: str) -> bytes:
    """Returns a file as the engine packs it; cut off beyond the limit."""
    pieces, _facts = api.get_archive(name, path)
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > MAX_BYTES:
            break
    return bytes(data)
