"""A web server as a task runs it: it shows what reached it, and answers in ways that a proxy could get wrong."""

from pathlib import Path

import websockets

_LIBRARIES = str(Path(websockets.__file__).parents[1])
"""A task has the libraries of its own environment only."""
SERVER = (
    f"import sys; sys.path.append({_LIBRARIES!r})"
    + r"""
import asyncio, hashlib, http.server, json, os, pathlib, sys, threading, time

ECHO_PORT = 0
HOSTILE = pathlib.Path("hostile.html")

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, kind="text/plain", status=200, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/headers":
            self.answer(json.dumps(self.headers.items()).encode(), "application/json")
        elif path == "/cookies":
            given = json.loads(HOSTILE_COOKIES.read_text()) if HOSTILE_COOKIES.exists() else []
            self.answer(b"set", headers=[("Set-Cookie", text) for text in [
                "plain=1", "secret=2; HttpOnly; Path=/", "wide=3; Domain=localhost", "auth=forged",
                "auth_0123abcd=forged; Path=/", "detent_task_8888-ab=forged", "=auth=forged", *given]])
        elif path == "/of-the-host":
            self.answer(b"x", headers=[("Clear-Site-Data", '"cookies"'), ("Strict-Transport-Security", "max-age=9"),
                                       ("Alt-Svc", 'h2="evil.example:443"'), ("Cache-Control", "max-age=99999"),
                                       ("Connection", "X-Hop"), ("X-Hop", "1"), ("X-Own", "2")])
        elif path == "/large":
            size = int(query)
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            piece = b"x" * 65536
            while size > 0:
                self.wfile.write(piece[:size])
                size -= len(piece)
        elif path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            number = 0
            try:
                while True:
                    text = f"data: {number}\n\n".encode()
                    self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
                    number += 1
                    time.sleep(0.05)
            except OSError:
                print("the reader of events has left", flush=True)
        elif path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            self.wfile.flush()
            self.close_connection = True
        elif path == "/wait":
            time.sleep(3600)
        elif path == "/page":
            body = HOSTILE.read_bytes() if HOSTILE.exists() else b"<!doctype html><h1>A page of a task</h1>"
            self.answer(body, "text/html")
        elif path == "/worker.js":
            self.answer(b"self.addEventListener('fetch', () => {})", "text/javascript")
        elif path == "/seen":
            self.answer(json.dumps(SEEN).encode(), "application/json")
        else:
            SEEN.append(self.path)
            self.answer(self.path.encode())

    do_HEAD = do_GET

    def do_POST(self):
        SEEN.append(f"POST {self.path}")
        digest, size = hashlib.sha256(), 0
        for piece in self.pieces():
            digest.update(piece)
            size += len(piece)
        self.answer(f"{size} {digest.hexdigest()}".encode())

    do_PUT = do_POST

    def pieces(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while length := int(self.rfile.readline(), 16):
                yield self.rfile.read(length)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left:
            piece = self.rfile.read(min(left, 65536))
            left -= len(piece)
            yield piece

    def log_message(self, *_):
        pass

SEEN = []
HOSTILE_COOKIES = pathlib.Path("cookies.json")
DECLARED = [value for name, value in os.environ.items() if name.startswith("DET_PROXY_PORT_")]
server = http.server.ThreadingHTTPServer(("127.0.0.1", int([*DECLARED, "0"][0])), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()

async def sockets():
    from websockets.asyncio.server import serve
    async def echo(socket):
        async for message in socket:
            if message == "flood":
                for _ in range(int(await socket.recv())):
                    await socket.send(b"x" * (1 << 20))
            elif message == "huge":
                await socket.send(b"x" * (17 << 20))
            elif message == "headers":
                await socket.send(json.dumps(list(socket.request.headers.raw_items())))
            elif message == "close":
                await socket.close(4321, "enough")
            else:
                await socket.send(message)
    def chosen(_, offered):
        return "echo.v1" if "echo.v1" in offered else None
    async with serve(echo, "127.0.0.1", 0, max_size=None, compression=None, select_subprotocol=chosen) as running:
        print("waits on", server.server_address[1], running.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()

asyncio.run(sockets())
"""
)
