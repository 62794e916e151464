"""Images of containers: which one a task gets, pulling it, and what is inside it."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined_agent.drivers.driver import NotStarted, SystemFailure
from determined_agent.drivers.engine import Engine, EngineError, EngineUnavailable, NoSuchObject, attached
from determined_agent.images.image_name import repository_and_tag
from determined_agent.images.pulled_images import PulledImages
from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular
from determined_launch.version import DETENT_VERSION

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

DEFAULT_IMAGES = {kind: f"detent/{kind}:{DETENT_VERSION}" for kind in ("cpu", "cuda", "rocm")}
"""Image of a task that names none, by type of slot; ``make images`` builds them."""
DEFAULT_ALIASES = {"determinedai/environments:*": "", "determinedai/pytorch-ngc*": ""}
"""Patterns of the older product's image names; an empty replacement is the default image."""
PULL_ATTEMPTS = 3
PULL_WAIT_SECONDS = 2.0
PROGRESS_SECONDS = 2.0
EXAMINE_SECONDS = 60.0
MAX_FACTS_BYTES = 8 << 20

# "denied", "unauthorized" and "not found" do not change by asking again.
_FINAL = (
    "denied",
    "unauthorized",
    "not found",
    "manifest unknown",
    "no such image",
    "invalid reference",
    "no basic auth",
)
COMPILE_ADVICE = (
    "Build it with: RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash "
    "$(python3 -c \"import sysconfig; print(sysconfig.get_path('purelib'))\") || true"
)
"""The last word is for files of packages that are templates and no Python."""
_QUESTION = """
import json, os, shutil, sys
from importlib import metadata, util
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
def is_uncompiled(name):
    found = util.find_spec(name)
    return found is not None and bool(found.origin) and found.origin.endswith(".py") and not os.path.exists(
        util.cache_from_source(found.origin))
print(json.dumps({
    "official": version("determined"),
    "version": sys.version_info[:2],
    "bash": shutil.which("bash"),
    "torch": version("torch"),
    "uncompiled": next(filter(is_uncompiled, ("torch", "tensorflow", "jax", "transformers")), None),
}))
"""

Say = Callable[[str], None]


@dataclass(frozen=True)
class ImageFacts:
    """What an image contains.

    ``official``, ``torch``: versions of the installed distributions ``determined`` and ``torch``.
    """

    id: str
    official: str | None
    version: tuple[int, int]
    bash: str | None
    """Path of bash inside the image, or None."""
    torch: str | None
    uncompiled: str | None
    """A large package without byte code, or None."""


class Images:
    """Pulls and examines images; examines each image only once, because its content never changes."""

    def __init__(
        self,
        engine: Engine,
        data: Path,
        *,
        pulled: PulledImages | None = None,
        defaults: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        """Creates the images of one agent.

        Args:
            engine: the engine that holds the images.
            data: folder for what is known about images.
            pulled: record of the images that the agent pulls; by default the one in ``data``.
            defaults: image by type of slot, in place of ``DEFAULT_IMAGES``.
            aliases: replacement by the pattern of a name in a configuration, beside ``DEFAULT_ALIASES``; an empty
                replacement is the default image.
        """
        self._engine = engine
        self._file = data / "images.json"
        self._pulled = pulled or PulledImages(data)
        self._defaults = {**DEFAULT_IMAGES, **(defaults or {})}
        self._aliases = {**(aliases or {}), **DEFAULT_ALIASES} if aliases else DEFAULT_ALIASES
        self._facts = _read_facts(self._file)
        self._locks: dict[str, asyncio.Lock] = {}

    def choose(self, wanted: Mapping[str, str], kind: str, say: Say) -> str:
        """Returns the image for a type of slot. ``wanted``: the images of the configuration by type of slot.

        Raises NotStarted for ``venv:PATH``, which names a Python of a machine.
        """
        name = wanted.get(kind) or self._defaults[kind]
        if name.startswith("venv:"):
            raise NotStarted(
                f"environment.image: {name} is a Python environment of a machine, and this agent runs tasks in "
                "containers. Name an image, or choose a resource pool whose agents run tasks as processes"
            )
        replacement = next((to for pattern, to in self._aliases.items() if fnmatchcase(name, pattern)), None)
        if replacement is None:
            return name
        replacement = replacement or self._defaults[kind]
        say(f"image: {replacement} in place of {name} (image_aliases of this agent)")
        return replacement

    async def find(
        self, name: str, say: Say, *, force: bool = False, auth: Mapping[str, Any] | None = None
    ) -> ImageFacts:
        """Returns the facts of an image after pulling it if it is missing, or if ``force`` is set.

        Raises NotStarted if the image cannot be had or holds no Python, SystemFailure if the engine is away.
        """
        lock = self._locks.setdefault(name, asyncio.Lock())
        if lock.locked():
            say(f"another task is pulling {name}")
        try:
            async with lock:
                present = await self._id(name)
                image_id = present if present is not None and not force else await self._pull(name, say, auth)
                if image_id == present:
                    await asyncio.to_thread(self._pulled.use, image_id)
                else:
                    await asyncio.to_thread(self._pulled.add, image_id, name)
                if image_id not in self._facts:
                    self._facts[image_id] = await self._engine.call(lambda api: _examine(api, name, image_id))
                    await asyncio.to_thread(write_atomic, self._file, _to_json(self._facts))
                return self._facts[image_id]
        except EngineUnavailable as problem:
            raise SystemFailure(problem.message) from problem
        except EngineError as problem:  # the next attempt would be refused as well
            raise NotStarted(f"environment.image: {name}: {problem.message}") from problem

    async def _id(self, name: str) -> str | None:
        try:
            return await self._engine.call(partial(_image_id, name=name))
        except NoSuchObject:
            return None
        except EngineError as problem:
            if isinstance(problem, EngineUnavailable):
                raise
            raise NotStarted(f"environment.image: {name}: {problem.message}") from problem

    async def _pull(self, name: str, say: Say, auth: Mapping[str, Any] | None) -> str:
        loop, started = asyncio.get_running_loop(), time.monotonic()

        def in_thread(text: str) -> None:
            loop.call_soon_threadsafe(say, text)

        say(f"pulling {name}")
        for attempt in range(1, PULL_ATTEMPTS + 1):
            try:
                await self._engine.call(partial(_pull_now, name=name, auth=auth, say=in_thread))
                break
            except EngineUnavailable:
                raise
            except EngineError as problem:
                if attempt == PULL_ATTEMPTS or any(text in problem.message.lower() for text in _FINAL):
                    hint = "; `make images` builds it" if name in DEFAULT_IMAGES.values() else ""
                    raise NotStarted(f"cannot pull image {name}: {problem.message}{hint}") from problem
                say(f"pulling {name} failed; trying again: {problem.message}")
                await asyncio.sleep(PULL_WAIT_SECONDS)
        image_id = await self._id(name)
        if image_id is None:
            raise NotStarted(f"image {name} was pulled and is not there; another program may have removed it")
        say(f"pulled {name} in {time.monotonic() - started:.0f} s")
        return image_id


class PullProgress:
    """Sums up the progress of the layers of a pull.

    >>> progress = PullProgress()
    >>> progress.add({"id": "a", "progressDetail": {"current": 1 << 20, "total": 4 << 20}})
    >>> progress.text
    '1 of 4 MB'
    """

    def __init__(self) -> None:
        self._layers: dict[str, tuple[int, int]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Adds one event of the engine's stream. Unpacking counts as done: its bytes are those of the download."""
        detail = event.get("progressDetail") or {}
        if event.get("status", "Downloading") == "Downloading" and detail.get("total"):
            self._layers[str(event.get("id"))] = (int(detail.get("current", 0)), int(detail["total"]))
        elif str(event.get("id")) in self._layers:
            total = self._layers[str(event.get("id"))][1]
            self._layers[str(event.get("id"))] = (total, total)

    @property
    def text(self) -> str:
        """Returns megabytes of megabytes, or an empty text while no size is known."""
        if not self._layers:
            return ""
        current, total = (sum(column) for column in zip(*self._layers.values(), strict=True))
        return f"{current >> 20} of {total >> 20} MB"


def _image_id(api: "APIClient", name: str) -> str:
    facts: dict[str, Any] = api.inspect_image(name)  # type: ignore[no-untyped-call]  # a decorator of the package
    return str(facts["Id"])


def _pull_now(api: "APIClient", name: str, auth: Mapping[str, Any] | None, say: Say) -> None:
    """Pulls an image. Without ``auth`` the package uses the machine's docker configuration and credential helpers."""
    events: Iterable[Mapping[str, Any]] = api.pull(
        *repository_and_tag(name), stream=True, decode=True, auth_config=dict(auth) if auth else None
    )
    progress, said, last = PullProgress(), "", time.monotonic()
    for event in events:
        if event.get("error"):
            raise EngineError(str(event["error"]))
        progress.add(event)
        now = time.monotonic()
        if progress.text != said and now - last >= PROGRESS_SECONDS:
            said, last = progress.text, now
            say(f"pulling {name}: {said}")


def _examine(api: "APIClient", name: str, image_id: str) -> ImageFacts:
    """Asks the image's own Python. Blocking."""
    from docker.types import LogConfig  # an agent that runs processes does not need the package

    host = api.create_host_config(network_mode="none", log_config=LogConfig(type="none"))
    made = api.create_container(
        image_id, entrypoint=["python3"], command=["-c", _QUESTION], host_config=host, user="0:0", working_dir="/"
    )
    out = b""
    try:
        with attached(api, made["Id"]) as connection:
            api.start(made["Id"])
            connection.settimeout(EXAMINE_SECONDS)
            while piece := connection.recv(1 << 16):
                out += piece
        out = b"".join(_payloads(out))
        answer = json.loads(out)
        major, minor = answer["version"]
        version = int(major), int(minor)
        return ImageFacts(image_id, answer["official"], version, answer["bash"], answer["torch"], answer["uncompiled"])
    except (ValueError, KeyError, TypeError):
        text = out.decode(errors="replace").strip()[-500:]
        raise NotStarted(f"python3 of image {name} does not work: {text}") from None
    except Exception as problem:
        if "python3" in str(problem) and "not found" in str(problem):
            raise NotStarted(f"image {name} has no python3; a task needs Python 3.10 or newer") from problem
        raise
    finally:
        api.remove_container(made["Id"], force=True, v=True)


def _payloads(frames: bytes) -> Iterator[bytes]:
    """Yields the contents of the engine's frames: 8 bytes of header, the last four of which are the size."""
    while frames:
        size = int.from_bytes(frames[4:8])
        yield frames[8 : 8 + size]
        frames = frames[8 + size :]


def _read_facts(path: Path) -> dict[str, ImageFacts]:
    try:
        stored = json.loads(read_regular(path, MAX_FACTS_BYTES))
        return {key: ImageFacts(**{**value, "version": tuple(value["version"])}) for key, value in stored.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
        logger.info("examining images again, because %s cannot be read: %s", path, problem)
        return {}


def _to_json(facts: Mapping[str, ImageFacts]) -> str:
    return json.dumps({key: asdict(value) for key, value in facts.items()})
