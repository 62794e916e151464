"""Whose account pays for the work of a pool: jobs of Slurm run as the account that started the master, whoever asks."""

import functools
import os
import pwd

from determined.errors import Forbidden
from determined_master.auth.principal import Principal
from determined_master.db.session import ReadSession
from determined_master.settings.pool_settings import PoolSettings
from determined_master.users import repository


@functools.cache
def own_account() -> str:
    """Returns the name of the account that started this master."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def payer(pool: PoolSettings | None) -> str:
    """Returns the account that is charged for the work of a pool; empty if its agents are charged to nobody."""
    provider = pool.provider if pool else None
    if provider is None or provider.type != "slurm":
        return ""
    charged = {name.lstrip("-"): value for name, value in provider.sbatch.items()}.get("account")
    return f"{own_account()} (Slurm account {charged})" if charged else own_account()


async def check(session: ReadSession, principal: Principal, pool: PoolSettings | None) -> None:
    """Raises Forbidden if the work of this user in this pool would be charged to somebody who has not agreed to it.

    Admins, and users who are linked with the master's own account, are the ones who pay.
    """
    provider = pool.provider if pool else None
    if pool is None or provider is None or not payer(pool) or provider.share_account:
        return
    user = await repository.get(session, principal.user_id)
    if user.admin or (user.agent_user_group or {}).get("agent_uid") == os.geteuid():
        return
    raise Forbidden(
        f'pool "{pool.pool_name}" runs its work as {own_account()}, the account that started the master, and it is '
        f"charged to {payer(pool)}; only admins may submit to it, and users who are linked with that account "
        "(det user link-with-agent-user), unless its provider has share_account: true"
    )
