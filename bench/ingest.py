"""Metric reports per second through the real routes, single and a hundred per request, against the floor. Needs `wrk`
(Debian: apt install wrk)."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.fake_agent import running_trials
from bench.figure import Figure, Skipped, paired
from bench.servers import ROOT, master, started

CONNECTIONS = 16
SECONDS = 2
BATCH = 100
"""Reports in a batched request."""

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


SEVERAL = """
local tokens = {%s}
local ids = {%s}
local count = %d
wrk.method = "POST"
function request()
  local reports = {}
  local i = count / PER %% #ids + 1
  for at = 1, PER do
    count = count + 1
    reports[at] = '{"group":"training","metrics":{"trialId":' .. ids[i] .. ',"trialRunId":1,"stepsCompleted":' .. count
      .. ',"metrics":{"avgMetrics":{"loss":0.123456,"accuracy":0.91,"lr":0.001}}}}'
  end
  return wrk.format("POST", "/detent/trials/" .. ids[i] .. "/reports",
    {["Content-Type"] = "application/json", ["Grpc-Metadata-x-allocation-token"] = "Bearer " .. tokens[i]},
    '{"reports":[' .. table.concat(reports, ",") .. ']}')
end
""".replace("PER", str(BATCH))


class Load:
    """Each run continues the step count of the previous one, so that every report has a new step."""

    _from = 0

    def __init__(self, folder: Path, tokens: dict[int, str], script: str = SCRIPT, reports: int = 1) -> None:
        self._file = folder / "load.lua"
        self._tokens = tokens
        self._script = script
        self._reports = reports
        """Reports per request."""

    def __call__(self, url: str) -> float:
        quoted = ",".join(f'"{t}"' for t in self._tokens.values())
        self._file.write_text(self._script % (quoted, ",".join(map(str, self._tokens)), Load._from))
        Load._from += 10_000_000
        argv = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "10s", "-s", str(self._file), url]
        output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in output:
            raise RuntimeError(output)
        rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
        assert rate is not None, output
        return float(rate.group(1)) * self._reports


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
            with running_trials(running.url, running.data, admin, 4) as tokens:
                loads = (Load(folder, tokens), Load(folder, tokens, SEVERAL, BATCH))
                single, several = (_over_the_floor(load, running.url, floor, rounds) for load in loads)
    return [
        Figure("metric reports/s, 16 connections, over the floor", 0.55, single[0], at_least=True, note=single[1]),
        Figure(f"the same, {BATCH} in a request", 0.35, several[0], at_least=True, note=several[1]),
    ]


def _over_the_floor(load: Load, url: str, floor: str, rounds: int) -> tuple[list[float], str]:
    load(url)
    load(floor)
    ratios, note = paired(lambda: load(url), lambda: load(floor), rounds)
    return ratios, f"{note} reports/s"


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
