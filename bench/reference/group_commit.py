"""The floor of metric ingestion: Starlette, msgspec, and one group-commit thread on SQLite with synchronous=FULL.

It has no login, no checks and one table. Run as a script: prints ``ready: URL``.
"""

import asyncio
import queue
import socket
import sqlite3
import sys
import threading
from typing import Any

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Inner(msgspec.Struct):
    avgMetrics: dict[str, float]


class Metrics(msgspec.Struct):
    trialId: int
    trialRunId: int
    stepsCompleted: int
    metrics: Inner


class Body(msgspec.Struct):
    group: str
    metrics: Metrics


class Bodies(msgspec.Struct):
    reports: list[Body]


DECODER = msgspec.json.Decoder(Body)
SEVERAL = msgspec.json.Decoder(Bodies)
INSERT = "INSERT INTO metrics (trial_id, steps, grp, body) VALUES (?, ?, ?, ?)"


class Writer:
    def __init__(self, path: str) -> None:
        self.path = path
        self.waiting: queue.SimpleQueue[tuple[list[Any], asyncio.Future[None]]] = queue.SimpleQueue()

    def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, trial_id INT, steps INT, grp TEXT, body BLOB)"
        )
        while True:
            group = [self.waiting.get()]
            while not self.waiting.empty():
                group.append(self.waiting.get_nowait())
            connection.execute("BEGIN")
            connection.executemany(INSERT, [row for rows, _ in group for row in rows])
            connection.execute("COMMIT")
            self.loop.call_soon_threadsafe(self.answer, [future for _, future in group])

    @staticmethod
    def answer(futures: list["asyncio.Future[None]"]) -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)


def row(body: Body) -> tuple[Any, ...]:
    sent = body.metrics
    return (sent.trialId, sent.stepsCompleted, body.group, msgspec.json.encode(sent.metrics.avgMetrics))


async def store(request: Request) -> Response:
    await committed(request, [row(DECODER.decode(await request.body()))])
    return Response(b"{}", media_type="application/json")


async def store_several(request: Request) -> Response:
    await committed(request, [row(body) for body in SEVERAL.decode(await request.body()).reports])
    return Response(b"{}", media_type="application/json")


async def committed(request: Request, rows: list[Any]) -> None:
    writer: Writer = request.app.state.writer
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    writer.waiting.put((rows, future))
    await future


async def main(path: str) -> None:
    one = Route("/api/v1/trials/{trial_id:int}/metrics", store, methods=["POST"])
    several = Route("/detent/trials/{trial_id:int}/reports", store_several, methods=["POST"])
    app = Starlette(routes=[one, several])
    app.state.writer = Writer(path)
    app.state.writer.start()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error"))
    print(f"ready: http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await server.serve(sockets=[listening])


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
