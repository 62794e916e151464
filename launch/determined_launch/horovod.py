"""``python3 -m determined.launch.horovod [overrides --] (--trial m:C | script args…)``.

The chief's container runs ``horovodrun``; the others run a server that starts what it is told to, and end with it.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from determined_launch import (
    attendance,
    containers,
    environment,
    horovod_line,
    interfaces,
    layer,
    options,
    runner,
    secure_shell,
    watching,
    worker_environment,
)
from determined_launch.channel import client, remote_shell
from determined_launch.errors import LaunchError
from determined_launch.layer import Situation
from determined_launch.runner import Plan

MODULE = "determined.launch.horovod"


def launch(situation: Situation, module: str = MODULE) -> int:
    """Starts this container's part."""
    layer.demand(module, "horovod")
    overrides, settings = situation.line.overrides, situation.settings
    given = options.given([*settings.horovod_arguments, *overrides], horovod_line.KNOWN)
    if "nics" in given:
        interfaces.check(given["nics"], "--network-interfaces")
    mark = runner.new_launch()
    _keep(situation, mark, "nics" in given)
    restarts = horovod_line.restarts(overrides, settings)
    if not situation.facts.is_chief:
        return attendance.attend(situation, mark, restarts=restarts)
    return _lead(situation, mark, restarts=restarts)


def _keep(situation: Situation, mark: str, has_chosen: bool) -> None:
    """This container's environment for its workers."""
    environ = {**situation.environ, **layer.variables(situation, environment.USE_HOROVOD, "1")}
    pinned = {**_pinned(situation, has_chosen), environment.LAUNCH_ID: mark}  # the chief's has another mark
    worker_environment.keep(situation.run_folder, environ, pinned, situation.python)


def _pinned(situation: Situation, has_chosen: bool) -> Mapping[str, str]:
    """The interface goes by another name on each machine, perhaps; horovod tells all of them the chief's."""
    environ, pinned = situation.environ, {}
    name = interfaces.choose(environ, situation.own_address) if situation.facts.nodes > 1 else None
    if name and not has_chosen:
        pinned = {"HOROVOD_GLOO_IFACE": name, environment.NCCL_INTERFACE: name}
    if environment.NCCL_INTERFACE in environ:
        pinned[environment.NCCL_INTERFACE] = environ[environment.NCCL_INTERFACE]
    return pinned


def _lead(situation: Situation, mark: str, *, restarts: bool) -> int:
    facts, run = situation.facts, situation.run_folder
    hosts = horovod_line.Hosts(
        tuple(containers.host_names(facts)),
        facts.slots,
        interfaces.choose(situation.environ, situation.own_address) if facts.nodes > 1 else None,
    )
    words = worker_environment.command(horovod_line.rank_variables(), situation.line.command)
    argv = horovod_line.build(
        situation.line.overrides,
        hosts,
        situation.settings,
        python=situation.python,
        command=words,
        autotune_log=str(run / "info" / "horovod-autotune.log"),
    )
    environ = worker_environment.bare(situation.environ, run)
    with attendance.peers(situation) as peers:
        if facts.nodes > 1:
            environ["PATH"] = f"{_remote_shell(situation, hosts.names)}:{environ.get('PATH', '')}"
        code = watching.run(situation, Plan(argv, restarts=restarts), environ=environ, launch=mark)
        peers.tell_end(code)
    return code


def _remote_shell(situation: Situation, names: Sequence[str]) -> Path:
    """The folder of the program ``ssh`` that reaches the other containers."""
    facts, environ, run = situation.facts, situation.environ, situation.run_folder
    channel = dict(
        zip(names[1:], zip(facts.addresses[1:], containers.ports(facts, environ)[1:], strict=True), strict=True)
    )
    if situation.settings.remote_shell != "ssh":
        return remote_shell.write(run, channel, situation.python)
    key, public = containers.key(environ), secure_shell.make_key(run)
    request = {"verb": "sshd", "public_key": public}
    try:
        answers = [client.ask(address, port, key, request, patience=30.0) for address, port in channel.values()]
    except OSError as error:
        raise LaunchError(f"a container could not start its sshd: {error}") from None
    shells = containers.shell_ports(facts, environ)
    reached = {name: (facts.addresses[rank], shells[rank]) for rank, name in enumerate(names) if rank}
    return secure_shell.write(run, reached, [str(answer["host_key"]) for answer in answers])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; its exit code is the first failed worker's, else the launcher's."""
    return layer.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
