"""Cookies that a page on another port of the host has set, and which sign-in counts."""

from typing import Any

import pytest
from tests.support.cluster import PASSWORD, Cluster

from determined_master.auth import authentication
from determined_master.auth.secrets import TASK_TOKEN_PREFIX
from determined_master.users import repository as users

USERS = ("admin", "determined")


async def signed_in(cluster: Cluster, username: str) -> tuple[str, str]:
    """Returns value of the cookie and id of a new sign-in."""
    cluster.client.cookies.clear()
    answer = await cluster.post("/detent/sign-in", {"username": username, "password": PASSWORD}, Authorization="")
    assert answer.status_code == 200, answer.text
    value = answer.cookies[cluster.master.authenticator.cookie]
    cluster.client.cookies.clear()
    return value, str(answer.json()["sessionId"])


async def who(cluster: Cluster, *values: str, session: str | None = None) -> Any:
    """Returns the user of a request with these cookies, or the status of its refusal."""
    name = cluster.master.authenticator.cookie
    headers = {"Authorization": "", "Cookie": "; ".join(f"{name}={value}" for value in values)}
    headers |= {"X-Detent-Session": session} if session is not None else {}
    answer = await cluster.client.get("/detent/session", headers=headers)
    return answer.json()["user"]["username"] if answer.status_code == 200 else answer.status_code


@pytest.mark.parametrize("is_first", [True, False])
async def test_among_two_cookies_the_one_that_the_page_means_counts(cluster: Cluster, is_first: bool):
    (own, session), (foreign, _) = [await signed_in(cluster, each) for each in USERS]
    both = (own, foreign) if is_first else (foreign, own)
    assert await who(cluster, *both, session=session) == "admin"


async def test_a_cookie_of_another_sign_in_is_none_for_the_page(cluster: Cluster):
    (_, session), (foreign, _) = [await signed_in(cluster, each) for each in USERS]
    assert await who(cluster, foreign, session=session) == 401
    assert await who(cluster, foreign, session="0") == 401
    assert await who(cluster, foreign, session="") == 401


async def test_several_sign_ins_count_as_none_where_the_page_does_not_say_which(cluster: Cluster):
    (own, _), (foreign, _) = [await signed_in(cluster, each) for each in USERS]
    assert await who(cluster, own, foreign) == 401
    assert await who(cluster, own) == "admin"
    assert await who(cluster, own, own) == "admin"


async def test_cookies_that_are_no_sign_in_hide_none(cluster: Cluster):
    own, session = await signed_in(cluster, "admin")
    assert await who(cluster, "forged", own, "", session=session) == "admin"
    assert await who(cluster, *(f"forged{number}" for number in range(20)), own, session=session) == 401


@pytest.mark.parametrize("name", ["auth", "the page's own"])
async def test_an_empty_cookie_is_no_sign_in(cluster: Cluster, name: str):
    cookie = f"{'auth' if name == 'auth' else cluster.master.authenticator.cookie}="
    answer = await cluster.client.get("/detent/session", headers={"Authorization": "", "Cookie": cookie})
    assert answer.status_code == 401


async def test_a_made_up_token_of_a_task_hides_no_sign_in(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    own, session = await signed_in(cluster, "admin")
    made_up = f"{TASK_TOKEN_PREFIX}.1.x"
    monkeypatch.setattr(authentication, "sign_ins", lambda *_: [made_up, own])  # sets have any order
    assert await who(cluster, made_up, own, session=session) == "admin"


async def test_a_cookie_of_a_user_who_is_not_active_hides_no_other(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    (own, session), (foreign, _) = [await signed_in(cluster, each) for each in USERS]
    async with cluster.master.database.write() as writing:
        row = await users.find_by_name(writing, "determined")
        assert row is not None
        row.active = False
    cluster.master.authenticator.forget_sessions()
    monkeypatch.setattr(authentication, "sign_ins", lambda *_: [foreign, own])  # sets have any order
    assert await who(cluster, foreign, own, session=session) == "admin"
