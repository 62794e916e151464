"""Tickets and visits."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest.mock import AsyncMock

import pytest
from tests.support.clock import FixedClock

from determined.errors import Unauthenticated
from determined_master.auth.principal import Principal
from determined_master.errors import StorageUnavailable
from determined_master.proxy import visits as module
from determined_master.proxy.task_port import TaskPort
from determined_master.proxy.visits import SignIn, Visits

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SERVICE, OTHER = TaskPort("1.a", 8888), TaskPort("1.b", 8888)
OWNER = 7


@dataclass
class SignedIn:
    """A sign-in that a test ends."""

    lasts: bool = True
    user: Principal = field(default_factory=lambda: Principal(1, "ada", admin=False))
    asked: list[int] = field(default_factory=list)

    async def may_enter(self, owner_id: int) -> bool:
        self.asked.append(owner_id)
        return self.lasts


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def visits(clock: FixedClock) -> Visits:
    return Visits(clock)


def ticket(visits: Visits, sign_in: SignedIn | None = None) -> str:
    return visits.make_ticket(SERVICE, OWNER, sign_in or SignedIn(), "/")  # type: ignore[arg-type]


async def entered(visits: Visits, sign_in: SignedIn | None = None) -> str:
    redeemed = await visits.redeem(ticket(visits, sign_in), SERVICE)
    assert redeemed is not None
    return redeemed[0]


async def test_a_ticket_is_valid_once(visits: Visits):
    text = ticket(visits)
    assert await visits.redeem(text, SERVICE) is not None
    assert await visits.redeem(text, SERVICE) is None


async def test_a_ticket_is_valid_for_its_own_port_and_lost_at_another(visits: Visits):
    text = ticket(visits)
    assert await visits.redeem(text, OTHER) is None
    assert await visits.redeem(text, SERVICE) is None


async def test_a_late_ticket_is_not_valid(visits: Visits, clock: FixedClock):
    text = ticket(visits)
    clock.at = NOW + timedelta(seconds=module.TICKET_SECONDS)
    assert await visits.redeem(text, SERVICE) is None


async def test_a_ticket_ends_with_the_sign_in(visits: Visits):
    sign_in = SignedIn()
    text = ticket(visits, sign_in)
    sign_in.lasts = False
    assert await visits.redeem(text, SERVICE) is None


async def test_a_visit_is_found_by_its_cookie_among_others_at_its_own_port_alone(visits: Visits):
    value = await entered(visits)
    assert await visits.find(["forged", value], SERVICE) is not None
    assert await visits.find([value], OTHER) is None
    assert await visits.find([], SERVICE) is None


async def test_a_visit_without_a_right_is_over_and_what_it_runs_is_cut(visits: Visits):
    sign_in = SignedIn()
    value = await entered(visits, sign_in)
    visit = await visits.find([value], SERVICE)
    assert visit is not None
    running = asyncio.create_task(visit.run(asyncio.Event().wait()))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    sign_in.lasts = False
    await visits.check()
    await running
    assert sign_in.asked[-1] == OWNER
    sign_in.lasts = True
    assert await visits.find([value], SERVICE) is None


async def test_a_program_is_cut_with_its_token(visits: Visits):
    sign_in = SignedIn()
    visit = module.Visit(SERVICE, OWNER, sign_in)  # type: ignore[arg-type]
    with visits.program(visit):
        running = asyncio.create_task(visit.run(asyncio.Event().wait()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        sign_in.lasts = False
        await visits.check()
        await running


async def test_the_oldest_visits_and_tickets_of_a_user_make_room(visits: Visits, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_TICKETS", 1)
    monkeypatch.setattr(module, "MAX_VISITS", 1)
    other = SignedIn(user=Principal(2, "bob", admin=False))
    first, others = ticket(visits), await entered(visits, other)
    value, newer = await entered(visits), await entered(visits)
    assert await visits.redeem(first, SERVICE) is None
    assert await visits.find([others], SERVICE) is not None
    assert await visits.find([value], SERVICE) is None
    assert await visits.find([newer], SERVICE) is not None


async def test_a_visit_outlives_a_database_that_is_away(visits: Visits):
    authenticator = AsyncMock()
    authenticator.principal.return_value = Principal(OWNER, "ada", admin=False)
    sign_in = SignIn(authenticator, {}, {}, authenticator.principal.return_value)
    redeemed = await visits.redeem(visits.make_ticket(SERVICE, OWNER, sign_in, "/"), SERVICE)
    assert redeemed is not None
    authenticator.principal.side_effect = StorageUnavailable(StorageUnavailable.AWAY)
    with pytest.raises(StorageUnavailable):
        await visits.check()
    with pytest.raises(StorageUnavailable):
        await visits.find([redeemed[0]], SERVICE)
    authenticator.principal.side_effect = None
    assert await visits.find([redeemed[0]], SERVICE) is not None
    authenticator.principal.side_effect = Unauthenticated("signed out")
    assert await visits.find([redeemed[0]], SERVICE) is None
