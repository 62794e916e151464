"""``python3 -m determined.launch.horovod [--autohorovod] [overrides --] (--trial m:C | script args…)``.

The chief's container runs ``horovodrun``. The other containers run a server that starts the requested processes and
ends with ``horovodrun``.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from determined_launch import (
    arguments,
    containers,
    environment,
    horovod_line,
    interfaces,
    launcher,
    options,
    peer_containers,
    process,
    runner,
    secure_shell,
    watchdog,
    worker_environment,
)
from determined_launch.channel import client, remote_shell
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
from determined_launch.runner import LauncherPlan

MODULE = arguments.HOROVOD


def launch(context: LaunchContext, module: str = MODULE) -> int:
    """Starts this container's part."""
    if context.line.is_auto and context.facts.nodes == 1 and context.facts.local_slots <= 1:
        if context.line.overrides:
            context.say(f"without effect in a plain process: {shlex.join(context.line.overrides)}")
        return process.run(context.line.command, {**context.environ, environment.CHIEF_IP: context.facts.chief})
    launcher.require(module, "horovod")
    overrides, settings = context.line.overrides, context.settings
    given = options.given([*settings.horovod_arguments, *overrides], horovod_line.KNOWN)
    if "nics" in given:
        interfaces.check(given["nics"], "--network-interfaces")
    mark = runner.new_launch()
    _keep(context, mark, "nics" in given)
    restarts = horovod_line.restarts(overrides, settings)
    if not context.facts.is_chief:
        return peer_containers.attend(context, mark, restarts=restarts)
    return _lead(context, mark, restarts=restarts)


def _keep(context: LaunchContext, mark: str, has_chosen: bool) -> None:
    """Saves this container's environment for its workers."""
    environ = {**context.environ, **launcher.variables(context, environment.USE_HOROVOD, "1")}
    # Each container has its own launch id; the environment that horovodrun passes on has the chief's.
    pinned = {**_pinned(context, has_chosen), environment.LAUNCH_ID: mark}
    worker_environment.keep(context.run_folder, environ, pinned, context.python)


def _pinned(context: LaunchContext, has_chosen: bool) -> Mapping[str, str]:
    """Returns the interface variables of this container.

    Interface names differ between machines, and horovod would pass the chief's to all of them.
    """
    environ, pinned = context.environ, {}
    name = interfaces.choose(environ, context.own_address) if context.facts.nodes > 1 else None
    if name and not has_chosen:
        pinned = {"HOROVOD_GLOO_IFACE": name, environment.NCCL_INTERFACE: name}
    if environment.NCCL_INTERFACE in environ:
        pinned[environment.NCCL_INTERFACE] = environ[environment.NCCL_INTERFACE]
    return pinned


def _lead(context: LaunchContext, mark: str, *, restarts: bool) -> int:
    facts, run = context.facts, context.run_folder
    hosts = horovod_line.Hosts(
        tuple(containers.host_names(facts)),
        facts.slots,
        interfaces.choose(context.environ, context.own_address) if facts.nodes > 1 else None,
    )
    words = worker_environment.command(horovod_line.rank_variables(), context.line.command, context.python)
    argv = horovod_line.build(
        context.line.overrides,
        hosts,
        context.settings,
        python=context.python,
        command=words,
        autotune_log=str(run / "info" / "horovod-autotune.log"),
    )
    environ = worker_environment.bare(context.environ, run)
    with peer_containers.peers(context) as peers:
        if facts.nodes > 1:
            environ["PATH"] = f"{_remote_shell(context, hosts.names)}:{environ.get('PATH', '')}"
        code = watchdog.run(context, LauncherPlan(argv, restarts=restarts), environ=environ, launch=mark)
        peers.tell_end(code)
    return code


def _remote_shell(context: LaunchContext, names: Sequence[str]) -> Path:
    """Returns the folder of the program ``ssh`` that reaches the other containers."""
    facts, environ, run = context.facts, context.environ, context.run_folder
    channel = dict(
        zip(names[1:], zip(facts.addresses[1:], containers.ports(facts, environ)[1:], strict=True), strict=True)
    )
    if context.settings.remote_shell != "ssh":
        return remote_shell.write(run, channel, context.python)
    key, public = containers.key(environ), secure_shell.make_key(run)
    request = {"verb": "sshd", "public_key": public}
    try:
        answers = [client.ask(address, port, key, request, patience=30.0) for address, port in channel.values()]
    except OSError as error:
        raise LaunchError(f"a container could not start sshd: {error}") from None
    shells = containers.shell_ports(facts, environ)
    reached = {name: (facts.addresses[rank], shells[rank]) for rank, name in enumerate(names) if rank}
    return secure_shell.write(run, reached, [str(answer["host_key"]) for answer in answers])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; returns the exit code of the first failed worker, else that of the launcher."""
    return launcher.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
