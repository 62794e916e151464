"""Routes of the fast path: plain Starlette, answered after the group commit."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, overload

import msgspec
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp

from determined.config.validation_words import in_words
from determined.errors import BadRequest, Forbidden, NotFound, Unauthenticated
from determined.link.messages import OutputAck, OutputBatch
from determined_master.allocations.rendezvous_wait import RendezvousWait
from determined_master.api.agent_output import lines_of
from determined_master.api.errors import error_body, response_of, translate
from determined_master.api.fast.dispatch import Json, body_of
from determined_master.api.schemas.enums import plain_level
from determined_master.auth.authentication import TASK_HEADER, Authenticator, bearer
from determined_master.auth.principal import Principal
from determined_master.db.group_commit import GroupWriter
from determined_master.db.models.base import EARLIEST, LATEST, MAX_INT64
from determined_master.db.session import Database
from determined_master.json_numbers import inward, is_plain
from determined_master.logs.line import LogLine
from determined_master.logs.store import Lines, LogStore
from determined_master.metrics.batch_store import BatchStore
from determined_master.metrics.report import Report
from determined_master.metrics.store import MetricStore
from determined_master.trials.access import TrialAccess

T = TypeVar("T")
V = TypeVar("V")
_EMPTY = Json(b"{}")
NUL_SYMBOL = "\u2400"
"""Replaces a NUL, which PostgreSQL cannot store in a text."""
MAX_REPORTS = 1000
"""Reports in one request: all of them are one transaction."""
MAX_METRICS, MAX_METRICS_TOGETHER = 10_000, 200_000
"""Metrics in one report, and in one request."""
OF_A_STEP = frozenset({"training", "validation"})
"""Groups whose reports are of a number of steps, by which searches and charts place them."""
MAX_LINES = 10_000
"""Log lines in one request."""

_Int = Annotated[int, msgspec.Meta(ge=-MAX_INT64, le=MAX_INT64)]
# As long as their columns.
_Id = Annotated[str, msgspec.Meta(max_length=64)]
_AllocationId = Annotated[str, msgspec.Meta(max_length=80)]
_AgentId = Annotated[str, msgspec.Meta(max_length=255)]


class _Inner(msgspec.Struct, rename=None):
    avgMetrics: dict[str, Any] | None = None
    avg_metrics: dict[str, Any] | None = None
    batchMetrics: list[Any] | None = None
    batch_metrics: list[Any] | None = None


class _TrialMetrics(msgspec.Struct):
    metrics: _Inner
    trialId: _Int | None = None
    trial_id: _Int | None = None
    trialRunId: _Int | None = None
    trial_run_id: _Int | None = None
    stepsCompleted: _Int | None = None
    steps_completed: _Int | None = None
    reportTime: str | None = None
    report_time: str | None = None


class MetricsBody(msgspec.Struct):
    """``POST /api/v1/trials/{id}/metrics``."""

    group: str
    metrics: _TrialMetrics


class ReportsBody(msgspec.Struct):
    """``POST /detent/trials/{id}/reports``."""

    reports: Annotated[list[MetricsBody], msgspec.Meta(max_length=MAX_REPORTS)]


class _LogLine(msgspec.Struct):
    log: str
    taskId: _Id | None = None
    task_id: _Id | None = None
    allocationId: _AllocationId | None = None
    allocation_id: _AllocationId | None = None
    agentId: _AgentId | None = None
    agent_id: _AgentId | None = None
    containerId: _Id | None = None
    container_id: _Id | None = None
    rankId: _Int | None = None
    rank_id: _Int | None = None
    level: str | None = None
    timestamp: str | None = None
    source: Annotated[str, msgspec.Meta(max_length=16)] | None = None
    stdtype: Annotated[str, msgspec.Meta(max_length=8)] | None = None


class LogsBody(msgspec.Struct):
    """``POST /api/v1/task/logs``."""

    logs: Annotated[list[_LogLine], msgspec.Meta(max_length=MAX_LINES)]


_METRICS = msgspec.json.Decoder(MetricsBody)
_REPORTS = msgspec.json.Decoder(ReportsBody)
_LOGS = msgspec.json.Decoder(LogsBody)


class FastRoutes:
    """Handlers of the hot requests."""

    def __init__(
        self,
        authenticator: Authenticator,
        access: TrialAccess,
        database: Database,
        writer: GroupWriter,
        metrics: MetricStore,
        logs: LogStore,
        meetings: RendezvousWait,
    ) -> None:
        self._authenticator = authenticator
        self._access = access
        self._database = database
        self._writer = writer
        self._metrics = metrics
        self._batches = BatchStore(metrics)
        self._logs = logs
        self._meetings = meetings

    async def report_metrics(self, request: Request) -> ASGIApp:
        try:
            trial_id = _trial_id(request.path_params["trial_id"])
            await self._may_report(request, trial_id)
            sent = await body_of(request)
            (report,) = _reports(trial_id, [decoded(sent, _METRICS)], sent)
            await self._writer.write(self._metrics, report, len(sent))
        except Exception as error:
            return response_of(translate(error))
        return _EMPTY

    async def report_batch(self, request: Request) -> ASGIApp:
        """Stores reports of one trial, in order, in one transaction; the answer lists those that are refused."""
        try:
            trial_id = _trial_id(request.path_params["trial_id"])
            await self._may_report(request, trial_id)
            sent = await body_of(request)
            reports = _reports(trial_id, decoded(sent, _REPORTS).reports, sent)
            answers = await self._writer.write(self._batches, reports, len(sent))
        except Exception as error:
            return response_of(translate(error))
        refused = [
            {"index": index, "status": error.status, **error_body(error)}
            for index, error in enumerate(answers)
            if error is not None
        ]
        return Json(msgspec.json.encode({"refused": refused}))

    async def post_logs(self, request: Request) -> ASGIApp:
        try:
            principal = await self._authenticator.principal(request.headers, request.cookies)
            sent = await body_of(request)
            body = decoded(sent, _LOGS)
            by_task: dict[str, list[LogLine]] = {}
            for raw in body.logs:
                line = _line(raw)
                by_task.setdefault(line.task_id, []).append(line)
            await self._may_log(principal, by_task)
            for task_id, lines in by_task.items():
                await self._writer.write(self._logs, Lines(task_id, lines), len(sent))
        except Exception as error:
            return response_of(translate(error))
        return _EMPTY

    async def post_output(self, request: Request) -> ASGIApp:
        """Stores an agent's lines with their byte range."""
        try:
            if not self._authenticator.is_agent(bearer(request.headers.get("authorization"))):
                raise Unauthenticated("the join token is not valid for this cluster")
            sent = await body_of(request)
            batch = OutputBatch.model_validate_json(sent)
            lines = lines_of(request.path_params["agent_id"], batch)
            committed = await self._writer.write(self._logs, lines, len(sent))
        except ValidationError as error:
            return response_of(BadRequest(f"invalid batch: {in_words(error.errors(include_url=False)[0])}"))
        except Exception as error:
            return response_of(translate(error))
        return Json(OutputAck(committed=committed).model_dump_json().encode())

    async def rendezvous(self, request: Request) -> ASGIApp:
        """As the route of FastAPI (api/v1/allocations.py), which every task asks once as it starts."""
        try:
            names = request.path_params
            principal = await self._principal(request)
            meeting = await self._meetings.of(principal, names["allocation_id"], names["resources_id"])
        except Exception as error:
            return response_of(translate(error))
        return Json(msgspec.json.encode({"rendezvousInfo": meeting._asdict()}))

    async def _principal(self, request: Request) -> Principal:
        """A known task token needs no query."""
        token = bearer(request.headers.get(TASK_HEADER)) or bearer(request.headers.get("authorization"))
        known = self._authenticator.known_task(token) if token else None
        return known or await self._authenticator.principal(request.headers, request.cookies)

    async def _may_report(self, request: Request, trial_id: int) -> None:
        """Raises Forbidden unless the principal may report for the trial."""
        principal = await self._principal(request)
        if principal.is_task and self._access.trial_of(principal) != trial_id:
            raise Forbidden(f"this task token may not report for trial {trial_id}")
        if not principal.is_task:
            async with self._database.read() as session:
                await self._access.check_trial(session, principal, trial_id)

    async def _may_log(self, principal: Principal, by_task: Mapping[str, Sequence[LogLine]]) -> None:
        """Raises Forbidden unless a task logs for its own allocation, or a user for tasks that they may change."""
        if principal.is_task:
            if by_task.keys() - {principal.task_id}:
                raise Forbidden("this task token may not write the log of another task")
            named = {line.allocation_id for lines in by_task.values() for line in lines if line.allocation_id}
            if named - {principal.allocation_id}:
                raise Forbidden("this task token may not write the log of another allocation")
            return
        async with self._database.read() as session:
            for task_id in by_task:
                await self._access.check_log(session, principal, task_id)


def _trial_id(digits: str) -> int:
    if len(digits) > len(str(MAX_INT64)) or int(digits) > MAX_INT64:
        raise NotFound(f"trial '{digits[:60]}' not found")
    return int(digits)


@overload
def visible(value: str) -> str: ...
@overload
def visible(value: dict[str, Any]) -> dict[str, Any]: ...
@overload
def visible(value: list[Any] | None) -> list[Any] | None: ...
@overload
def visible(value: object) -> object: ...
def visible(value: object) -> object:
    """Returns the value with each NUL in its keys and texts replaced by a visible symbol."""
    if isinstance(value, str):
        return value.replace("\0", NUL_SYMBOL)
    if isinstance(value, dict):
        return {visible(key): visible(item) for key, item in value.items()}
    return [visible(item) for item in value] if isinstance(value, list) else value


def _reports(trial_id: int, bodies: Sequence[MetricsBody], sent: bytes) -> list[Report]:
    """``sent``: the bytes of the request, which are searched first: almost no report contains a NUL."""
    now = datetime.now(UTC)
    reports = [_report(trial_id, body, now) for body in bodies]
    counts = [len(report.metrics) for report in reports]
    if max(counts, default=0) > MAX_METRICS:
        raise BadRequest(f"a report has at most {MAX_METRICS} metrics, not {max(counts)}")
    if sum(counts) > MAX_METRICS_TOGETHER:
        raise BadRequest(f"a request has at most {MAX_METRICS_TOGETHER} metrics, not {sum(counts)}; send fewer reports")
    return [_without_nul(report) for report in reports] if b"\\u0000" in sent else reports


def _without_nul(report: Report) -> Report:
    return msgspec.structs.replace(
        report,
        group=visible(report.group),
        metrics=visible(report.metrics),
        batch_metrics=visible(report.batch_metrics),
    )


def _report(trial_id: int, body: MetricsBody, now: datetime) -> Report:
    """``now``: the time of a report that has none."""
    sent, inner = body.metrics, body.metrics.metrics
    run_id = sent.trialRunId if sent.trial_run_id is None else sent.trial_run_id
    if run_id is None:
        raise BadRequest("metrics.trialRunId is missing")
    metrics = (inner.avgMetrics if inner.avg_metrics is None else inner.avg_metrics) or {}
    batches = inner.batchMetrics if inner.batch_metrics is None else inner.batch_metrics
    reported = sent.reportTime if sent.report_time is None else sent.report_time
    steps = sent.stepsCompleted if sent.steps_completed is None else sent.steps_completed
    if steps is None and body.group in OF_A_STEP:
        raise BadRequest(f"metrics.stepsCompleted is missing: {body.group} metrics are of a step")
    plain = is_plain(metrics)
    return Report(
        trial_id,
        run_id,
        body.group,
        steps,
        _time(reported) if reported else now,
        metrics if plain else inward(metrics),
        None if batches is None else inward(batches),
        plain,
    )


def _line(raw: _LogLine) -> LogLine:
    task_id = either(raw.task_id, raw.taskId)
    if not task_id:
        raise BadRequest("logs[].taskId is missing")
    return LogLine(
        task_id=task_id,
        log=raw.log.replace("\0", NUL_SYMBOL),
        timestamp=_time(raw.timestamp),
        level=plain_level(raw.level),
        allocation_id=either(raw.allocation_id, raw.allocationId),
        agent_id=either(raw.agent_id, raw.agentId),
        container_id=either(raw.container_id, raw.containerId),
        rank_id=either(raw.rank_id, raw.rankId),
        stdtype=raw.stdtype or "stdout",
        source=raw.source or "task",
    )


def _time(text: str | None) -> datetime:
    if not text:
        return datetime.now(UTC)
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRequest(f"not an RFC 3339 time: {text[:60]!r}") from error
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not EARLIEST <= value <= LATEST:
        raise BadRequest(f"a time must be between {EARLIEST:%Y} and {LATEST:%Y}, not {text[:60]!r}")
    return value


def decoded(body: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    """Decodes the body. Raises BadRequest, which names the position of the first error."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise BadRequest(f"invalid body: {decoding_error(str(error))}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"invalid body: byte {error.start} is not {error.encoding}") from error
    except RecursionError:
        raise BadRequest("invalid body: it is nested too deeply") from None


def decoding_error(text: str) -> str:
    """Returns an error of the decoder in words.

    >>> decoding_error("Expected `int | null`, got `str` - at `$.metrics.steps`")
    'metrics.steps: expected a whole number or nothing, got a text'
    >>> decoding_error("JSON is malformed: invalid character (byte 3)")
    'it is not JSON (byte 3)'
    """
    found = _MISMATCH.match(text)
    if found:
        expected = " or ".join(_KINDS.get(kind, kind) for kind in found["expected"].split(" | "))
        return f"{found['path'] or 'the body'}: expected {expected}, got {_KINDS.get(found['got'], found['got'])}"
    if text == "Input data was truncated":
        return "it is not JSON: it ends too early"
    at = _BYTE.search(text)
    return f"it is not JSON ({at[0]})" if at else "it is not what this route takes"


_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_BYTE = re.compile(r"byte \d+")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}


def either(snake: V | None, camel: V | None) -> V | None:
    """Returns the value of the spelling that was sent."""
    return camel if snake is None else snake
