"""Sends one request repeatedly until its input ends, and prints how long each took, as JSON.

A process of its own: a thread would wait for the interpreter of the test, which parses what its other clients get.
"""

import contextlib
import http.client
import itertools
import json
import sys
import threading
import time
from typing import Any

TIMEOUT_SECONDS = 180
NUMBER = "#"
"""In a body: the number of the request."""


def probe(request: dict[str, Any], stop: threading.Event) -> dict[str, list[Any]]:
    """Returns the seconds of each request, and what failed. ``request``: port, method, path, headers, body, pause."""
    seconds: list[float] = []
    failures: list[str] = []
    numbers = itertools.count()
    while not failures and not (stop.is_set() and seconds):
        body = request["body"].replace(NUMBER, str(next(numbers))) if request["body"] else None
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", request["port"], timeout=TIMEOUT_SECONDS)
        with contextlib.closing(connection):
            try:
                connection.request(request["method"], request["path"], body, request["headers"])
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))
                continue
        seconds.append(time.monotonic() - began)
        if answer.status != 200:
            failures.append(f"status {answer.status}")
        stop.wait(request["pause"])
    return {"seconds": seconds, "failures": failures}


def main() -> None:
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    print(json.dumps(probe(json.loads(sys.argv[1]), ended)))


if __name__ == "__main__":
    main()
