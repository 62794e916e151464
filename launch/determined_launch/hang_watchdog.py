"""Watches the steps of all ranks and ends an attempt in which no rank makes steps any more."""

import dataclasses
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from determined_launch import containers, exit_records, hang_diagnosis, stack_dumps, step_counter
from determined_launch.channel import client, frames
from determined_launch.channel.frames import Connection
from determined_launch.channel.server import Server, Verb
from determined_launch.launcher import LaunchContext
from determined_launch.step_counter import Steps

CODE = 1
_ASK_SECONDS = 10.0


def verbs(context: LaunchContext) -> dict[str, Verb]:
    """Returns the requests that a container answers about its ranks: ``ranks`` and ``stacks``."""
    folder = _folder(context)

    def tell_ranks(connection: Connection, request: Mapping[str, Any]) -> None:
        connection.send_json(frames.ANSWER, [dataclasses.asdict(one) for one in step_counter.read(folder)])

    def tell_stacks(connection: Connection, request: Mapping[str, Any]) -> None:
        connection.send_json(frames.ANSWER, stack_dumps.collect(os.getpid(), folder))

    return {"ranks": tell_ranks, "stacks": tell_stacks}


def serve(context: LaunchContext) -> Server:
    """Opens the server of a container whose layer needs no server itself."""
    facts, environ = context.facts, context.environ
    port = containers.ports(facts, environ)[facts.rank]
    return Server(context.own_address, port, containers.key(environ), verbs(context))


class HangWatch:
    """The watchdog of the first container: asks the others in a thread; the runner reads the result at each tick."""

    def __init__(self, context: LaunchContext, launch: str, others: Sequence[int]) -> None:
        """``others``: the ranks of the other containers that start workers."""
        self._context = context
        self._launch = launch
        self._other_ranks = others
        self._limit = context.settings.hang_seconds
        self._folder = _folder(context)
        self._code: int | None = None
        threading.Thread(target=self._watch, name="hang", daemon=True).start()

    def __call__(self) -> "int | None":
        return self._code

    def _watch(self) -> None:
        pause = max(0.1, min(5.0, self._limit / 10))
        while True:
            time.sleep(pause)
            if min((one.age for one in step_counter.read(self._folder)), default=0.0) < self._limit:
                continue  # the others need not be asked
            ranks = self._ranks()
            if ranks and min(one.age for one in ranks) >= self._limit:
                self._end(ranks)
                return

    def _ranks(self) -> list[Steps]:
        """Returns the ranks of all containers.

        Returns none if a container does not answer, because its ranks may still make steps.
        """
        counts = step_counter.read(self._folder)
        for address, port in self._others():
            answer = self._ask(address, port, "ranks")
            if not isinstance(answer, list):
                return []
            counts += [Steps(int(one["rank"]), int(one["count"]), float(one["age"])) for one in answer]
        return sorted(counts, key=lambda one: one.rank)

    def _end(self, ranks: list[Steps]) -> None:
        say = self._context.say
        say(f"no rank has completed a step for {min(one.age for one in ranks):.0f} s; their stacks follow")
        dumps = stack_dumps.collect(os.getpid(), self._folder)
        for address, port in self._others():
            answer = self._ask(address, port, "stacks")
            if isinstance(answer, dict):
                dumps |= {int(rank): str(text) for rank, text in answer.items()}
        blamed = hang_diagnosis.find(ranks, dumps)
        text = f"hang: {blamed.text}; the attempt ends ({self._context.settings.hang_setting} is {self._limit:g} s)"
        say(text)
        rank = ranks[0].rank if blamed.rank is None else blamed.rank
        exit_records.write(
            self._context.exits,
            exit_records.ExitRecord(
                rank=rank,
                code=CODE,
                signal=None,
                host=socket.gethostname() if rank in {one.rank for one in step_counter.read(self._folder)} else "",
                last_lines=[text],
                time=time.time(),
                cause=exit_records.HANG,
                launch=self._launch,
            ),
        )
        self._code = CODE

    def _others(self) -> list[tuple[str, int]]:
        facts = self._context.facts
        ports = containers.ports(facts, self._context.environ)
        return [(facts.addresses[rank], ports[rank]) for rank in self._other_ranks]

    def _ask(self, address: str, port: int, verb: str) -> object:
        try:
            key = containers.key(self._context.environ)
            return client.ask(address, port, key, {"verb": verb}, patience=_ASK_SECONDS)
        except (OSError, ValueError):
            return None


def _folder(context: LaunchContext) -> Path:
    return exit_records.place(context.environ, "steps")
