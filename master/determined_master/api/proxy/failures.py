"""What a visitor or a program reads where a task's answer would be: what happened, and what to do."""

import logging

from starlette.responses import Response

from determined.errors import ApiError, DeterminedError, Forbidden, NotFound, TooManyRequests
from determined_master.api.errors import translate
from determined_master.api.proxy.plain_pages import plain_page
from determined_master.proxy.task_port import TaskPort
from determined_master.streams.broker import NobodyCame

logger = logging.getLogger(__name__)
BAD_GATEWAY = 502
GATEWAY_TIMEOUT = 504


def failure_page(accept: str, service: TaskPort, problem: Exception) -> Response:
    """Returns the page about a request that could not be passed on to a port of a task."""
    title = f"Cannot open {service}"
    if isinstance(problem, NobodyCame):
        advice = "The agent of the task does not answer. Try again; `det agent list` shows whether it is connected."
        return plain_page(accept, GATEWAY_TIMEOUT, title, advice)
    if isinstance(problem, Forbidden | NotFound | TooManyRequests):
        return plain_page(accept, problem.status, title, _sentence(problem.message))
    if isinstance(problem, ApiError):
        return plain_page(accept, problem.status, title, f"{_sentence(problem.message)} Try again when it runs.")
    if isinstance(problem, DeterminedError):
        advice = (
            f"Its program has to listen on port {service.port}, on 127.0.0.1 or on all addresses; look into its log."
        )
        return plain_page(accept, BAD_GATEWAY, title, f"{_sentence(problem.message)} {advice}")
    error = translate(problem)
    return plain_page(accept, error.status, title, error.message)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
