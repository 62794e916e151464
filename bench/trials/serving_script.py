"""Serves N MB at the path /N, and leaves when it is preempted: for the figures of streams."""

import http.server
import threading
import time

import determined as det

PIECE = bytes(1 << 20)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(int(self.path.lstrip("/"))):
            self.wfile.write(PIECE)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("port", server.server_address[1], flush=True)
with det.core.init() as core_context:
    while not core_context.preempt.should_preempt():
        time.sleep(0.005)
