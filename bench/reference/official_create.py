"""Creates experiments as the official client does: 90 MB of files in base64 inside JSON.

``official_create.py URL TOKEN`` prints ``ready: URL``, then the seconds of a create for each line of its input.
"""

import base64
import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

CONFIG = "name: large\nentrypoint: 'true'\nsearcher: {name: single, metric: loss}\nhyperparameters: {}\n"
FILES, FILE_BYTES = 90, 1_000_000
MARK = b"MARKMARKMARKMARK"


def body() -> bytearray:
    """Returns a request body. Half of the files are noise, half are text."""
    words = b"".join(b"value_%d = compute(%d)\n" % (i % 997, i) for i in range(60_000))[:FILE_BYTES]
    files = []
    for number in range(FILES):
        content = base64.b64encode(os.urandom(FILE_BYTES) if number % 2 else words).decode()
        if not number:
            content = MARK.decode() + content[len(MARK) :]
        files.append(
            {
                "path": f"f{number}.bin",
                "type": 48,
                "content": content,
                "mtime": "1700000000",
                "mode": 0o644,
                "uid": 0,
                "gid": 0,
            }
        )
    return bytearray(json.dumps({"config": CONFIG, "modelDefinition": files, "activate": False}).encode())


def main(url: str, token: str) -> None:
    data = body()
    mark_position = data.index(MARK)
    address = urlsplit(url)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    print(f"ready: {url}", flush=True)
    number = time.time_ns()
    for _ in sys.stdin:
        number += 1
        data[mark_position : mark_position + len(MARK)] = b"%016d" % (number % 10**16)  # a new context each time
        start = time.perf_counter()
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        connection.request("POST", "/api/v1/experiments", bytes(data), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {text[:500]!r}")
        print(f"{time.perf_counter() - start:.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
