"""Says below a list whose account is charged for the work of the pools in it."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from determined.client.session import Session
from determined_cli.terminal.messages import say


def say_payers(session: Session, args: Namespace, rows: Iterable[Mapping[str, Any]]) -> None:
    """Prints a line for each pool of the rows that is charged to an account, as pools of type ``slurm`` are.

    ``rows`` are those of a table; other formats are read by programs, which find ``account`` in the list of pools.
    """
    named = {row.get("resource_pool") for row in rows}
    if getattr(args, "format", "table") != "table" or not named - {None, ""}:
        return
    for pool in session.get("/api/v1/resource-pools")["resourcePools"]:
        if pool.get("account") and pool["name"] in named:
            say(f"pool {pool['name']}: its jobs run as, and are charged to, {pool['account']}")
