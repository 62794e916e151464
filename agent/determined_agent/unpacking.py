"""A context's tar.zst into a folder; no member may land outside of it."""

import tarfile
from pathlib import Path

import zstandard

from determined.errors import ContextError


def unpack(archive: Path, target: Path) -> None:
    """Unpacks. Raises ContextError for a broken archive and for a member that escapes or is a special file."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        with open(archive, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
            with tarfile.open(fileobj=plain, mode="r|") as tar:
                tar.extractall(target, filter="data")
    except tarfile.FilterError as error:
        raise ContextError(f"a member leaves the folder or is no plain file: {error}") from error
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise ContextError(f"the archive is broken: {error}") from error
    except OSError as error:
        raise ContextError(f"{error.strerror}: {error.filename or target}") from error
