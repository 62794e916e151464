"""The provider of type ``command``: an admin's commands start and end agents, on any machine."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from determined_master.providers import notices
from determined_master.providers.background_look import BackgroundLook
from determined_master.providers.master_address import MasterAddress
from determined_master.providers.provider import (
    Instance,
    LaunchFailed,
    Observation,
    ObservedState,
    ReleaseFailed,
    how_ended,
)

MAX_OUTPUT_BYTES = notices.MAX_BYTES
"""End of a command's output that is kept. All of it is read, or the command would block."""

PIPE_BYTES = 1 << 20


_Source = tuple[str, str, tuple[str, ...]]
"""Where the notices of a pool are: its name, file and command."""


class CommandProvider:
    def __init__(self, address: MasterAddress, token_file: Path, environment: Mapping[str, str], secret: str) -> None:
        """``environment``: the variables of the commands. ``secret``: the join token, which no text shows."""
        self._address = address
        self._token_file = token_file
        # Settings of the master may hold the passwords of its database and its users.
        self._environment = {name: value for name, value in environment.items() if not name.startswith("DET_")}
        self._secret = secret
        self._looks: dict[_Source, BackgroundLook[Mapping[str, Observation]]] = {}

    async def want(self, instance: Instance) -> None:
        try:
            code, output = await self._run(instance, instance.settings.launch)
        except TimeoutError as error:
            text = f"the launch command did not end within {instance.settings.command_timeout:g} s and was killed"
            raise LaunchFailed(text, may_exist=True) from error
        except OSError as error:
            raise LaunchFailed(f"cannot run the launch command: {error}") from error
        if code:
            raise LaunchFailed(f"the launch command failed ({how_ended(code)}){self._last_line(output)}")

    async def release(self, instance: Instance) -> None:
        try:
            code, output = await self._run(instance, instance.settings.terminate)
        except TimeoutError as error:
            text = f"the terminate command did not end within {instance.settings.command_timeout:g} s and was killed"
            raise ReleaseFailed(text) from error
        except OSError as error:
            raise ReleaseFailed(f"cannot run the terminate command: {error}") from error
        if code:
            raise ReleaseFailed(f"the terminate command failed ({how_ended(code)}){self._last_line(output)}")

    async def observe(self, instances: Sequence[Instance]) -> Mapping[str, Observation]:
        """Returns what the notices say; they are read beside. Instances that earlier settings started keep theirs."""
        observations: dict[_Source, Mapping[str, Observation] | None] = {}
        for instance in {_source(each): each for each in instances if _has_notices(each)}.values():
            source = _source(instance)
            look = self._looks.setdefault(source, BackgroundLook(partial(self._notices, instance)))
            observations[source] = look.latest(instance.settings.notice_interval)
        stays = Observation(ObservedState.RUNNING)
        return {
            each.agent_id: said.get(each.agent_id, stays)
            for each in instances
            if (said := observations.get(_source(each))) is not None
        }

    async def _notices(self, instance: Instance) -> Mapping[str, Observation]:
        """Reads the notices of a pool. Raises NoticeError and OSError."""
        settings = instance.settings
        observations: dict[str, Observation] = {}
        if settings.notice_file:
            text = await asyncio.to_thread(notices.read_file, Path(settings.notice_file))
            observations |= notices.parse(text, settings.notice_file)
        if settings.notice_command:
            try:
                code, output = await self._run(instance, settings.notice_command)
            except TimeoutError as error:
                text = f"the notice command did not end within {settings.command_timeout:g} s and was killed"
                raise notices.NoticeError(text) from error
            if code:
                raise notices.NoticeError(f"the notice command failed ({how_ended(code)}){self._last_line(output)}")
            observations |= notices.parse(output.decode(errors="replace"), "output of the notice command")
        return observations

    async def _run(self, instance: Instance, words: Sequence[str]) -> tuple[int, bytearray]:
        """Returns the exit code and the end of the output. Raises OSError and TimeoutError."""
        values = {
            "pool": instance.pool,
            "agent_id": instance.agent_id,
            "slots": str(instance.settings.slots_per_agent),
            "master": instance.settings.master_url or self._address.reachable,
            "token_file": str(self._token_file),
        }
        with _Output() as output:
            process = await asyncio.create_subprocess_exec(
                *(_filled(word, values) for word in words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.end,
                stderr=output.end,
                env=self._environment | {f"DET_PROVIDER_{name.upper()}": value for name, value in values.items()},
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(instance.settings.command_timeout):
                    code = await process.wait()
            except BaseException:
                # Also if the master stops: a command must not go on without it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                raise
            output.read()
        return code, output.kept

    def _last_line(self, output: bytearray) -> str:
        """Returns the last line as the end of a sentence, without the join token."""
        text = output.decode(errors="replace").replace(self._secret, "***")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return ": " + "".join(c for c in lines[-1][-500:] if c.isprintable()) if lines else ""


def _has_notices(instance: Instance) -> bool:
    return bool(instance.settings.notice_file or instance.settings.notice_command)


def _source(instance: Instance) -> _Source:
    return (instance.pool, instance.settings.notice_file, instance.settings.notice_command)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


class _Output:
    """A pipe for the output of a command. Nobody waits for its end: a program that the command left behind may hold it
    open."""

    def __init__(self) -> None:
        self.kept = bytearray()

    def __enter__(self) -> "_Output":
        self._reader, self.end = os.pipe()
        os.set_blocking(self._reader, False)
        asyncio.get_running_loop().add_reader(self._reader, self.read)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)
        os.close(self.end)

    def read(self) -> None:
        """Reads at most what a pipe holds: a program may write without end."""
        with contextlib.suppress(BlockingIOError):
            self.kept += os.read(self._reader, PIPE_BYTES)
            del self.kept[:-MAX_OUTPUT_BYTES]
