"""A small master on localhost. It records the requests of a task and answers from a table that a test may change."""

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


class FakeMaster:
    """Records calls and answers them. ``calls`` holds (method, path, query, body, headers) in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str, Any, dict[str, str]]] = []
        self.answers: dict[tuple[str, str], Callable[[Any], Answer]] = {}
        self.requests_of_several: list[int] = []
        """Number of reports in each request that has more than one."""
        self.headers: dict[str, str] = {}
        """Headers that are added to each answer."""
        self.preempt = threading.Event()
        self.arrived = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = False
        self.server.block_on_close = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def on(self, method: str, path: str, answer: Callable[[Any], Answer] | Answer) -> None:
        """Answers calls whose path ends with ``path``."""
        self.answers[method, path] = answer if callable(answer) else lambda _: answer

    def bodies(self, suffix: str) -> list[Any]:
        """Returns the bodies of the calls so far whose path ends with ``suffix``."""
        return [body for _, path, _, body, _ in self.calls if path.endswith(suffix)]

    def wait_for(self, suffix: str, count: int = 1) -> list[Any]:
        """Waits for ``count`` calls and returns their bodies."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.bodies(suffix)) >= count, timeout=60)
        return self.bodies(suffix)

    def _take(self, method: str, path: str, query: str, body: Any, headers: dict[str, str]) -> Answer:
        with self.arrived:
            self.calls.append((method, path, query, body, headers))
            self.arrived.notify_all()
        return self._answer(method, path, query, body)

    def _answer_together(self, call: tuple[str, str, str, Any, dict[str, str]]) -> Answer:
        """Handles each report of a request as a request of its own."""
        method, path, query, body, headers = call
        if (method, "/reports") in self.answers:
            return self._take(*call)
        alone = path.replace("/detent/", "/api/v1/").replace("/reports", "/metrics")
        self.requests_of_several.append(len(body["reports"]))
        refused = []
        for index, report in enumerate(body["reports"]):
            status, value = self._take(method, alone, query, report, headers)
            if status in (0, 502, 503):
                return status, value
            if status != 200:
                refused.append({"index": index, "status": status, **value})
        return 200, {"refused": refused}

    def _answer(self, method: str, path: str, query: str, body: Any) -> Answer:
        for (verb, suffix), answer in self.answers.items():
            if verb == method and path.endswith(suffix):
                return answer(body)
        if path.endswith("/signals/preemption"):
            seconds = float(query.partition("=")[2] or 0)
            return 200, {"preempt": self.preempt.wait(min(seconds, 20.0))}
        if "/detent/ids/" in path:
            return 200, {"ids": [query.partition("prefix=")[2]]}
        if path.endswith("/best_searcher_validation_metric"):
            return 404, {"error": {"code": 5, "reason": "NotFound", "error": "none yet"}}
        return 200, {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        master = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(length)
                if len(data) < length:  # the sender was killed between its headers and its body
                    self.close_connection = True
                    return
                path, _, query = self.path.partition("?")
                body = json.loads(data) if data else None
                call = (self.command, path, query, body, dict(self.headers))
                status, value = master._answer_together(call) if path.endswith("/reports") else master._take(*call)
                if status == 0:  # hang up without an answer
                    self.close_connection = True
                    return
                text = value if isinstance(value, bytes) else json.dumps(value).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    for name, header in master.headers.items():
                        self.send_header(name, header)
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def close(self) -> None:
        """Ends all polls and the server."""
        self.preempt.set()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def serving():
    """Yields a fake master that serves inside the block."""
    master = FakeMaster()
    thread = threading.Thread(target=master.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield master
    finally:
        master.close()
        thread.join()


def task_environment(master: FakeMaster, run_dir: Any, **more: str) -> dict[str, str]:
    """Returns the environment of a trial with one slot."""
    config = {"checkpoint_storage": {"type": "directory", "container_path": f"{run_dir}/checkpoints"}}
    return {
        "DET_MASTER": master.url,
        "DET_ALLOCATION_ID": "7.a.1",
        "DET_RESOURCES_ID": "r1",
        "DET_TASK_ID": "7.a",
        "DET_SESSION_TOKEN": "secret",
        "DET_SLOT_IDS": "[0]",
        "DET_RUN_DIR": str(run_dir),
        "DET_EXPERIMENT_ID": "7",
        "DET_TRIAL_ID": "3",
        "DET_TRIAL_RUN_ID": "2",
        "DET_TRIAL_SEED": "5",
        "DET_STEPS_COMPLETED": "0",
        "DET_HPARAMS": json.dumps({"lr": 0.1}),
        "DET_EXPERIMENT_CONFIG": json.dumps(config),
        **more,
    }
