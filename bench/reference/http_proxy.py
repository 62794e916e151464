"""A bare proxy: Starlette in front, httpx behind, as one writes it in ten lines. ``python -m … UPSTREAM_URL``."""

import socket
import sys

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


def application(upstream: str) -> Starlette:
    client = httpx.AsyncClient(timeout=60)

    async def forward(request: Request) -> StreamingResponse:
        sent = client.build_request("GET", f"{upstream}{request.url.path}")
        answer = await client.send(sent, stream=True)
        return StreamingResponse(answer.aiter_raw(), answer.status_code)

    return Starlette(routes=[Route("/{path:path}", forward)])


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"ready: http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(application(sys.argv[1]), log_level="error")).run([listening])


if __name__ == "__main__":
    main()
