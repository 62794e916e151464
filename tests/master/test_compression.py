"""Compression of answers: complete answers of more than 1 kB, without tokens and without text from the request."""

import asyncio
import gzip
import threading
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message

from determined_master.web import compression
from determined_master.web.compression import Compression

LONG = "experiment 7 is running\n" * 400


async def answer(request: Request) -> Response:
    kind = request.path_params["kind"]
    headers = {"etag": '"7"'} if kind == "tagged" else {}
    if kind == "file":
        return FileResponse(__file__)
    if kind == "lines":
        return StreamingResponse(lines(), media_type="application/json")
    if kind == "archive":
        return Response(LONG, media_type="application/gzip")
    if kind == "refused":
        return PlainTextResponse(LONG, 400)
    if kind == "packed":
        return Response(LONG, media_type="text/javascript", headers={"content-encoding": "br"})
    return PlainTextResponse(LONG[:900] if kind == "short" else LONG, headers=headers)


async def lines() -> AsyncIterator[bytes]:
    yield LONG.encode()
    yield LONG.encode()


PATHS = ("/detent/{kind}", "/api/v1/auth/{kind}", "/detent/sign-in/{kind}", "/api/v1/experiments/7/{kind}")
app = Compression(Starlette(routes=[Route(path, answer) for path in PATHS]))


async def fetch(path: str, accepted: str = "gzip, deflate, br", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://master") as client:
        return await client.get(path, headers={"Accept-Encoding": accepted, **headers})


async def test_a_long_answer_comes_compressed_and_unchanged():
    compressed = await fetch("/detent/long")
    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) < 1000
    assert compressed.text == LONG
    assert "accept-encoding" in compressed.headers["vary"].lower()


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0", "deflate"])
async def test_a_client_that_takes_no_gzip_gets_plain_text_that_caches_keep_apart(accepted: str):
    plain = await fetch("/detent/long", accepted)
    assert "content-encoding" not in plain.headers
    assert plain.text == LONG
    assert "accept-encoding" in plain.headers["vary"].lower()


@pytest.mark.parametrize("kind", ["short", "lines", "archive", "refused"])
async def test_short_answers_streams_archives_and_errors_are_sent_as_they_are(kind: str):
    assert "content-encoding" not in (await fetch(f"/detent/{kind}")).headers


@pytest.mark.parametrize("path", ["/api/v1/auth/login", "/detent/sign-in/links", "/api/v1/experiments/7/model_def"])
async def test_answers_with_a_token_or_an_archive_are_sent_as_they_are(path: str):
    assert "content-encoding" not in (await fetch(path)).headers


async def test_an_answer_that_is_compressed_already_is_not_compressed_again():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://master") as client:
        async with client.stream("GET", "/detent/packed", headers={"Accept-Encoding": "gzip, br"}) as streamed:
            assert streamed.headers["content-encoding"] == "br"
            assert b"".join([part async for part in streamed.aiter_raw()]) == LONG.encode()


async def test_the_etag_of_a_compressed_answer_is_weak():
    assert (await fetch("/detent/tagged")).headers["etag"] == 'W/"7"'
    assert (await fetch("/detent/tagged", "identity")).headers["etag"] == '"7"'


async def test_a_part_of_a_file_is_sent_as_it_is():
    part = await fetch("/detent/file", Range="bytes=0-1499")
    assert (part.status_code, len(part.content)) == (206, 1500)
    assert "content-encoding" not in part.headers


async def test_the_head_of_a_stream_comes_before_its_first_line():
    sent: list[Message] = []
    has_line = asyncio.Event()

    async def waiting() -> AsyncIterator[bytes]:
        await has_line.wait()
        yield b"line\n"

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    stream = Compression(StreamingResponse(waiting(), media_type="application/json"))
    headers = [(b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "path": "/detent/x", "headers": headers, "asgi": {"spec_version": "2.4"}}
    following = asyncio.ensure_future(stream(scope, receive, send))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [message["type"] for message in sent] == ["http.response.start"]
    has_line.set()
    await following
    assert sent[1]["body"] == b"line\n"


async def test_a_big_answer_is_compressed_off_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    threads: list[int] = []
    compressobj = zlib.compressobj

    def record_thread(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return compressobj(*arguments)

    monkeypatch.setattr(zlib, "compressobj", record_thread)
    big = {"text": "x" * compression.THREAD_BYTES}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Compression(JSONResponse(big))), base_url="http://master"
    ) as client:
        compressed = await client.get("/detent/big", headers={"Accept-Encoding": "gzip"})
        assert compressed.json() == big
    assert len(gzip.compress(compressed.content)) < len(compressed.content)
    assert threading.get_ident() not in threads
    assert len(threads) == 1
