"""Authorization rule of every route. A route declares its rule by its dependency."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute

from determined_master.api import dependencies


class Rule(Enum):
    """Rules: who may call a route. Rules about an object are checked in the transaction that changes it."""

    PUBLIC = "everybody, without signing in"
    SIGNED_IN = "every user; a task, which reads as its owner does"
    READER = "every user; a task of the owner"
    USER = "every user"
    SELF = "the user in question, or an admin"
    OWNER = "the owner of the experiment or command, or an admin"
    TASK = "the task itself; the owner of its experiment, or an admin"
    TASK_OR_USER = "the task itself; every user"
    TASK_ONLY = "the task itself"
    SEARCH_TASK = "the task that runs the experiment's search"
    ADMIN = "an admin"
    AGENT = "whoever holds the join token"
    ADMIN_OR_OPERATOR = "an admin, or the owner of the data folder"
    USER_OR_OPERATOR = "every user, or the owner of the data folder"
    STREAM_KEY = "whoever has the key of the stream, which is valid once; its agent besides the join token"


RULES: Mapping[Callable[..., Any], Rule] = {
    dependencies.nobody: Rule.PUBLIC,
    dependencies.current_principal: Rule.SIGNED_IN,
    dependencies.reader: Rule.READER,
    dependencies.current_user: Rule.USER,
    dependencies.self_or_admin: Rule.SELF,
    dependencies.owner: Rule.OWNER,
    dependencies.task_or_owner: Rule.TASK,
    dependencies.task_or_user: Rule.TASK_OR_USER,
    dependencies.task: Rule.TASK_ONLY,
    dependencies.search_task: Rule.SEARCH_TASK,
    dependencies.current_admin: Rule.ADMIN,
    dependencies.agent: Rule.AGENT,
    dependencies.admin_or_operator: Rule.ADMIN_OR_OPERATOR,
    dependencies.user_or_operator: Rule.USER_OR_OPERATOR,
    dependencies.log_reader: Rule.ADMIN,
    dependencies.metrics_reader: Rule.USER,
}


def rules(router: APIRouter) -> Iterator[tuple[str, str, list[Rule]]]:
    """Yields method, path and the declared rules of each route. A correct route declares exactly one."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            asked = [each.call for each in route.dependant.dependencies]
            declared = [RULES[call] for call in asked if call is not None and call in RULES]
            for method in sorted(route.methods or ()):
                yield method, route.path, declared
