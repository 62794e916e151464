"""``det up`` and ``det down``: a whole cluster on one machine, as children of one small supervisor."""

import argparse
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from determined.client import auth_store, certificates
from determined.client.session import ONCE, Session
from determined.client.sign_in import hashed
from determined.errors import ApiError, DeterminedError
from determined_cli import add_agent
from determined_cli.terminal import browser
from determined_cli.up import data_folder, slurm_pool
from determined_cli.up.graceful_shutdown import drain, end_tasks
from determined_cli.up.log_rotation import rotate
from determined_cli.up.slurm_pool import SlurmPool
from determined_cli.up.supervisor import Child, python
from determined_launch.atomic_file import write_atomic

START_SECONDS = 60.0
NOW_SECONDS = 45.0
"""How long `det down --now` waits for `det up`."""
CERTIFICATE = "master-certificate.pem"
"""Name of the copy of the master's certificate in the data folder."""
ROTATE_SECONDS = 1.0
"""How often the sizes of the logs are checked."""


class StartFailed(DeterminedError):
    """The cluster did not start."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_up(args: argparse.Namespace) -> int:
    folder = Path(args.data).expanduser().absolute() if args.data else data_folder.default()
    if args.detach:
        return _detached(args, folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = slurm_pool.settings_of(args.config, os.environ)
    data_folder.check_file_system(folder.resolve(), database_url=str(own.get("database_url") or ""))
    pool = slurm_pool.of(args, os.environ) if args.pool else None
    if pool is not None:
        args.host = pool.host
        if pool.checkpoints is not None:
            pool.checkpoints.mkdir(parents=True, exist_ok=True, mode=0o700)
    with data_folder.held(folder):
        variables = {} if pool is None else pool.variables() | slurm_pool.certificate(folder, pool.host, own)
        return LocalCluster(args, folder, pool, variables).run()


def run_down(args: argparse.Namespace) -> int:
    folder = Path(args.data).expanduser().absolute() if args.data else data_folder.default()
    pid = data_folder.holder(folder)
    if pid is None:
        return _end_tasks(folder, f"nothing runs in {folder}")
    data_folder.refuse_other_host(folder)
    os.kill(pid, signal.SIGTERM)
    if args.now:
        time.sleep(0.05)
        os.kill(pid, signal.SIGTERM)
    say("stopping; waiting for trials to save" if not args.now else "stopping at once")
    deadline = time.monotonic() + NOW_SECONDS if args.now else math.inf
    while data_folder.holder(folder) == pid:
        if time.monotonic() > deadline:
            say("det up does not respond; killing it")
            os.kill(pid, signal.SIGKILL)  # master and agent end with it
            deadline = math.inf
        time.sleep(0.05)
    return _end_tasks(folder, "stopped; running trials resume from their checkpoints at the next det up")


def _end_tasks(folder: Path, text: str) -> int:
    """Ends tasks that neither master nor agent has ended, then prints ``text``, or which tasks still run."""
    code, left = end_tasks(folder)
    if code == 0:
        say(text)
    elif left:
        say(f"stopped, but these tasks could not be stopped and still run: {', '.join(left)}")
    else:
        say("stopped, but could not check whether tasks still run")
    return code


def _master_options(args: argparse.Namespace) -> list[str]:
    """Returns the options that were given; others come from the settings file, or are the master's defaults."""
    options = ["--config", str(Path(args.config).expanduser().absolute())] if args.config else []
    options += ["--host", args.host] if args.host else []
    return options + (["--port", str(args.port)] if args.port is not None else [])


class LocalCluster:
    """One run of the supervisor, from the lock to the end of its children."""

    def __init__(
        self,
        args: argparse.Namespace,
        folder: Path,
        pool: SlurmPool | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """``pool``: jobs of Slurm instead of an agent here. ``variables``: further settings of the master."""
        self._args = args
        self._pool = pool
        self._folder = folder
        self._signals = 0
        self._wake = threading.Event()
        self.url = ""
        self._public_url = ""
        self._token = ""
        self._agent_tls: list[str] = []
        logs = data_folder.make_private(folder)
        command = python(
            "determined_master", "--data", str(folder), *_master_options(args), "--one-machine", "--announce"
        )
        self._master = Child("master", command, logs / "master.log", announced=True, variables=variables or {})
        self._agent: Child | None = None
        self._rotate_at = 0.0

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        try:
            self._start_master()
            if self._pool is None:
                self._start_agent()
            if not self._signals:
                auth_store.set_default_master(self.url)
                print(f"ready: {self.url}", flush=True)
                say(f"logged in as admin; the password is in {self._folder / 'password'}; Ctrl-C ends it")
                for line in self._pool.lines() if self._pool is not None else ():
                    say(line)
                if not self._args.quiet_link:
                    _offer_link(self._args, self.url, self._folder)
                    say(_how_to_add_an_agent(self._public_url, self._folder))
            while not self._signals:
                self._wake.wait(0.2)
                self._tend()
            self._end()
            self._kill_children()
            return _end_tasks(self._folder, "all tasks have ended")
        finally:
            self._kill_children()
            auth_store.set_default_master(None)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._signals += 1
        self._wake.set()

    def _start_master(self) -> None:
        self._master.start()
        url = self._master.announcement("ready: ", START_SECONDS, self._say_upgrade)
        if url is None:
            self._master.signal(signal.SIGTERM)
            raise StartFailed(f"the master did not start: {_last_line(self._master.log)}; its log: {self._master.log}")
        if (host := urlsplit(url).hostname) not in add_agent.LOOPBACK:
            say(f"warning: listening on {host}: every user who can log in can run code as {_me()}")
            if self._pool is not None:
                say(f"who can connect: every machine that reaches {url}, with a password or a token of this cluster")
        self._public_url = add_agent.reachable(url)
        self.url = re.sub(r"//0\.0\.0\.0:", "//127.0.0.1:", url)
        # A restarted master keeps its port; of two options the last one counts.
        self._master.argv = [*self._master.argv, "--port", url.rsplit(":", 1)[1]]
        if url.startswith("https:"):
            self._trust_master()
        self._login()

    def _trust_master(self) -> None:
        """Trusts the certificate of the master that was just started: no other program can listen at its address."""
        parts = urlsplit(self.url)
        pem = certificates.fetch(str(parts.hostname), parts.port or 443)
        auth_store.trust_certificate(self.url, pem)
        file = self._folder / CERTIFICATE
        write_atomic(file, pem)
        name = certificates.verified_name(pem)
        self._agent_tls = ["--master-cert-file", str(file), *(["--master-cert-name", name] if name else [])]

    def _say_upgrade(self, text: str) -> None:
        say(text)
        if self._args.quiet_link:  # read by a waiting `det up --detach`
            print(text, flush=True)

    def _login(self) -> None:
        password = (self._folder / "password").read_text().strip()
        session = Session(self.url, timeout=10)
        for username in ("determined", "admin"):
            try:
                answer = session.post(
                    "/api/v1/auth/login", {"username": username, "password": hashed(password), "isHashed": True}
                )
            except ApiError:
                say(f"the password of {username} was changed; log in with det user login {username}")
                continue
            auth_store.remember(self.url, username, answer["token"])
            self._token = answer["token"]
        session.close()

    def _start_agent(self) -> None:
        arguments = ["--master", self.url, "--token-file", str(self._folder / "agent-token"), "--tasks-as-me"]
        arguments += self._agent_tls
        arguments += ["--data", str(self._folder / "agent"), "--id", socket.gethostname() or "agent"]
        if self._args.slots is not None:
            arguments += ["--slots", str(self._args.slots)]
        if self._args.task_python:
            arguments += ["--task-python", str(Path(self._args.task_python).expanduser().absolute())]
        if self._args.container_runtime:
            arguments += ["--container-runtime", self._args.container_runtime]
        self._agent = Child("agent", python("determined_agent", *arguments), self._folder / "logs" / "agent.log")
        self._agent.start()
        session = Session(self.url, token=self._token, timeout=5)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and not self._signals and self._token:
            agents = session.get("/api/v1/agents")["agents"]
            if any(agent["connected"] for agent in agents):
                break
            if not self._agent.is_running:
                raise StartFailed(f"the agent did not start: {_last_line(self._agent.log)}; its log: {self._agent.log}")
            self._wake.wait(0.02)
        session.close()

    def _tend(self) -> None:
        if self._master.tend(say):
            self._master.announcement("ready: ", START_SECONDS, self._say_upgrade)
        if self._agent is not None:
            self._agent.tend(say)
        if time.monotonic() >= self._rotate_at:
            self._rotate_at = time.monotonic() + ROTATE_SECONDS
            for name in ("master.log", "agent.log", "up.log"):
                rotate(self._folder / "logs" / name)

    def _end(self) -> None:
        # The data folder's own token, since passwords may have changed.
        token = (self._folder / "operator-token").read_text().strip()
        session = Session(self.url, token=token, timeout=5, retry=ONCE)
        drain(session, self._args.grace, say, lambda: self._signals > 1, self._pause)
        session.close()

    def _pause(self, seconds: float) -> None:
        self._wake.clear()
        self._wake.wait(seconds)

    def _kill_children(self) -> None:
        children = [child for child in (self._agent, self._master) if child is not None]
        for child in children:
            child.signal(signal.SIGTERM)
        deadline = time.monotonic() + 5
        for child in children:
            while child.is_running and time.monotonic() < deadline:
                time.sleep(0.02)
            child.signal(signal.SIGKILL)
            if child.process is not None:
                child.process.wait()


def _detached(args: argparse.Namespace, folder: Path) -> int:
    """Starts the supervisor in a session of its own and waits until the cluster is ready."""
    pid = data_folder.holder(folder)
    if pid is not None:
        raise data_folder.in_use(folder, pid)
    data_folder.make_private(folder)
    argv = ["up", *_master_options(args), "--data", str(folder), "--grace", str(args.grace)]
    if args.slots is not None:
        argv += ["--slots", str(args.slots)]
    if args.task_python:
        argv += ["--task-python", args.task_python]
    if args.container_runtime:
        argv += ["--container-runtime", args.container_runtime]
    pool = slurm_pool.of(args, os.environ) if args.pool else None  # its problems are said here, not in a log
    if args.pool:
        argv += ["--pool", args.pool]
    argv.append("--quiet-link")  # its output goes to a file, which must not contain a sign-in link
    log = folder / "logs" / "up.log"
    with data_folder.open_log(log) as errors:
        child = Child("supervisor", python("determined_cli", *argv), log, announced=True)
        child.process = subprocess.Popen(
            child.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
    url = child.announcement("ready: ", START_SECONDS + 5, say)
    if url is None:
        raise StartFailed(f"det up did not start: {_last_line(log)}")
    print(f"ready: {url}", flush=True)
    for line in pool.lines() if pool is not None else ():
        say(line)
    _offer_link(args, url, folder)
    public = url if args.host != "0.0.0.0" else add_agent.reachable(url.replace("//127.0.0.1:", "//0.0.0.0:", 1))
    say(_how_to_add_an_agent(public, folder))
    say(f"running in the background; stop it with det down{' --data ' + str(folder) if args.data else ''}")
    return 0


def _offer_link(args: argparse.Namespace, url: str, folder: Path) -> None:
    session = Session(url, token=(folder / "operator-token").read_text().strip(), timeout=5, retry=ONCE)
    try:
        link = browser.new_link(session, "admin")
    except ApiError as error:
        say(f"could not make a link to the web page: {error.message}")
        return
    finally:
        session.close()
    say(f"open: {link} (valid once, for 10 minutes)")
    if sys.stdout.isatty() and browser.has_desktop() and not args.no_browser:
        browser.show(link)


def _how_to_add_an_agent(url: str, folder: Path) -> str:
    certificate = folder / CERTIFICATE if url.startswith("https:") else ""
    return add_agent.hint(url, folder / "agent-token", certificate)


def _me() -> str:
    return "root" if os.getuid() == 0 else f"user {os.getuid()}"


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "no output"
