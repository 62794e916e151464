"""Opens streams into tasks: a program beside a task, or a connection to one of its ports."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field, model_validator

from determined.link.messages import Execution, SshAccess
from determined_master.api.dependencies import (
    AuthenticatorDep,
    AuthorizationDep,
    DatabaseDep,
    Owner,
    SecretsDep,
    StreamsDep,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import Wire
from determined_master.auth.authentication import lasts
from determined_master.ssh import shell_keys
from determined_master.streams import target

router = APIRouter(route_class=JsonRoute, prefix="/detent/tasks/{task_id}", tags=["detent"])
MAX_WORDS = 1000
MAX_COMMAND_CHARACTERS = 64 << 10
MAX_PORT = 65535
MAX_KEY_CHARACTERS = 1000
Cells = Annotated[int, Field(ge=1, le=10_000)]
SessionId = Annotated[str, Field(pattern="^([0-9a-f]{32})?$")]


class Terminal(Wire):
    rows: Cells
    columns: Cells
    type: Annotated[str, Field(pattern="^[A-Za-z0-9._+-]{1,64}$")] = "xterm"


class Ssh(Wire):
    """``public_key``: of the client, as OpenSSH writes it: ``ssh-ed25519 AAAA… comment``."""

    public_key: Annotated[str, Field(max_length=MAX_KEY_CHARACTERS)]


class StreamBody(Wire):
    """Either ``port``, or ``ssh``, or a program: ``argv``, which may be empty for a shell on a ``terminal``."""

    rank: Annotated[int, Field(ge=0, lt=2**31)] = 0
    argv: Annotated[list[Annotated[str, Field(max_length=MAX_COMMAND_CHARACTERS)]], Field(max_length=MAX_WORDS)] = []
    terminal: Terminal | None = None
    port: Annotated[int, Field(ge=0, le=MAX_PORT)] = 0
    ssh: Ssh | None = None
    session_id: SessionId = ""

    @model_validator(mode="after")
    def _check(self) -> "StreamBody":
        if sum(map(len, self.argv)) > MAX_COMMAND_CHARACTERS:
            raise ValueError(f"argv: at most {MAX_COMMAND_CHARACTERS} characters in all")
        if any("\0" in word for word in self.argv):
            raise ValueError("argv: no word may hold a zero byte")
        if sum(map(bool, (self.port, self.ssh, self.argv or self.terminal))) > 1:
            raise ValueError("a port, ssh or a program, not several of them")
        if not self.port and not self.ssh and not self.argv and self.terminal is None:
            raise ValueError("a program needs argv, or a terminal for a shell")
        return self


class StreamAnswer(Wire):
    """``key``: the second subprotocol with which the client connects to ``/detent/streams/{streamId}``, once and
    soon. ``session_id``: continues the same session over another stream, some time after this one was cut.
    ``host_key``: the public key of the task's host, for ``ssh`` only."""

    stream_id: str
    key: str
    session_id: str
    agent_id: str
    host_key: str = ""


@router.post("/streams")
async def open_stream(
    task_id: str,
    body: StreamBody,
    user: Owner,
    database: DatabaseDep,
    authorization: AuthorizationDep,
    streams: StreamsDep,
    request: Request,
    authenticator: AuthenticatorDep,
    secrets: SecretsDep,
) -> StreamAnswer:
    async with database.read() as session:
        container = await target.find(session, authorization, user, task_id, body.rank)
    execution = access = None
    host_key = ""
    if body.ssh is not None:
        key = shell_keys.host_key(secrets.ssh_secret, task_id)
        public_key = shell_keys.checked_public_key(body.ssh.public_key)
        access, host_key = SshAccess(host_key=key.private_openssh, public_keys=[public_key]), key.public_openssh
    elif not body.port:
        size = body.terminal
        execution = Execution(
            argv=body.argv,
            terminal=(size.rows, size.columns) if size else None,
            terminal_type=size.type if size else "",
        )
    headers, cookies = dict(request.headers), dict(request.cookies)

    async def is_same() -> bool:
        return (await authenticator.principal(headers, cookies)).user_id == user.user_id

    stream, session_id = await streams.open(
        container,
        user.username,
        is_signed_in=lambda: lasts(is_same()),
        execution=execution,
        port=body.port,
        ssh=access,
        session_id=body.session_id,
    )
    return StreamAnswer(
        stream_id=stream.id,
        key=stream.keys["client"],
        session_id=session_id,
        agent_id=container.agent_id,
        host_key=host_key,
    )
