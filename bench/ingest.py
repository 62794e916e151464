"""Single metric reports a second through the real route, against the floor; needs `wrk` (Debian: apt install wrk)."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.fake_agent import playing
from bench.figure import Figure, Skipped, paired
from bench.servers import ROOT, master, started

CONNECTIONS = 16
SECONDS = 2

SCRIPT = """
local tokens = {%s}
local ids = {%s}
local count = %d
wrk.method = "POST"
function request()
  count = count + 1
  local i = count %% #ids + 1
  local body = '{"group":"training","metrics":{"trialId":' .. ids[i] .. ',"trialRunId":1,"stepsCompleted":' .. count
    .. ',"metrics":{"avgMetrics":{"loss":0.123456,"accuracy":0.91,"lr":0.001}}}}'
  return wrk.format("POST", "/api/v1/trials/" .. ids[i] .. "/metrics",
    {["Content-Type"] = "application/json", ["Grpc-Metadata-x-allocation-token"] = "Bearer " .. tokens[i]}, body)
end
"""


class Load:
    """Each run goes on counting where the last one ended, so that every report is of a new step."""

    def __init__(self, folder: Path, tokens: dict[int, str]) -> None:
        self._script = folder / "load.lua"
        self._tokens = tokens
        self._from = 0

    def __call__(self, url: str) -> float:
        quoted = ",".join(f'"{t}"' for t in self._tokens.values())
        self._script.write_text(SCRIPT % (quoted, ",".join(map(str, self._tokens)), self._from))
        self._from += 10_000_000
        argv = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "10s", "-s", str(self._script), url]
        output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in output:
            raise RuntimeError(output)
        rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
        assert rate is not None, output
        return float(rate.group(1))


def figures(rounds: int = 7) -> list[Figure]:
    if shutil.which("wrk") is None:
        raise Skipped("wrk is not installed; on Debian: apt install wrk")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference = [
            sys.executable,
            str(ROOT / "bench" / "reference" / "group_commit.py"),
            str(folder / "floor.sqlite"),
        ]
        with (
            started(reference, "ready: ") as (floor, _),
            master(folder / "data") as running,
            running.session() as admin,
        ):
            with playing(running.url, running.data, admin, 4) as tokens:
                load = Load(folder, tokens)
                load(running.url)
                load(floor)
                ratios, words = paired(lambda: load(running.url), lambda: load(floor), rounds)
    return [
        Figure("metric reports/s, 16 connections, over the floor", 0.4, ratios, at_least=True, note=words + " req/s")
    ]


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
