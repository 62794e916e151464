"""When a service ends because nobody uses it, with times as a clock shows them."""

from datetime import UTC, datetime, timedelta

import pytest

from determined_master.commands.idle import (
    GRACE_SECONDS,
    STORE_SECONDS,
    Service,
    Step,
    allowed,
    decide,
    idle_since,
    limit_warning,
)
from determined_master.streams.uses import Use

READY = datetime(2030, 1, 1, 12, tzinfo=UTC)
LONG_AGO = READY - timedelta(days=7)
HALF_AN_HOUR = 1800.0
UNUSED = Use()
OPEN = Use(open_streams=1)


def after(seconds: float) -> datetime:
    return READY + timedelta(seconds=seconds)


def step(
    seconds: float,
    use: Use = UNUSED,
    *,
    stored: datetime | None = None,
    timeout: float | None = HALF_AN_HOUR,
    began_at: datetime = LONG_AGO,
) -> Step:
    return decide(Service(READY, stored), use, timeout, began_at=began_at, now=after(seconds))


def test_a_service_that_nobody_has_used_ends_exactly_at_its_timeout():
    assert step(HALF_AN_HOUR - 1) == Step(wait=1.0)
    assert step(HALF_AN_HOUR) == Step(reason="idle for 30 minutes")


def test_the_timeout_begins_at_the_last_end_of_a_stream():
    use = Use(last_end=after(1000))
    stored = after(1000)
    assert step(1000 + HALF_AN_HOUR - 1, use, stored=stored).reason == ""
    assert step(1000 + HALF_AN_HOUR, use, stored=stored).reason == "idle for 30 minutes"


def test_an_open_stream_keeps_a_service_for_days():
    now = 5 * 86_400
    assert step(now, OPEN, stored=after(now - 1)) == Step(wait=min(STORE_SECONDS, STORE_SECONDS - 1))


def test_a_stream_that_is_opened_at_the_deadline_keeps_the_service():
    assert step(HALF_AN_HOUR, OPEN).reason == ""


def test_without_a_timeout_a_service_never_ends():
    assert step(365 * 86_400, timeout=None) == Step(wait=None)


def test_the_time_of_the_last_use_is_stored_now_and_then_while_a_stream_is_open():
    assert step(60, OPEN).last_used_at == after(60)
    assert step(60, OPEN, stored=after(60 - STORE_SECONDS)).last_used_at == after(60)
    recent = step(60, OPEN, stored=after(50))
    assert (recent.last_used_at, recent.wait) == (None, STORE_SECONDS - 10)


def test_the_end_of_a_stream_is_stored_once():
    use = Use(last_end=after(100))
    assert step(101, use, stored=after(60)).last_used_at == after(100)
    assert step(101, use, stored=after(100)).last_used_at is None


def test_after_a_restart_the_stored_use_counts_and_cut_sessions_have_time_to_come_back():
    used = after(1000)
    restart = after(1000 + HALF_AN_HOUR + 3600)
    just_after = 1000 + HALF_AN_HOUR + 3600 + 1
    waiting = step(just_after, stored=used, began_at=restart)
    assert (waiting.reason, waiting.wait) == ("", GRACE_SECONDS - 1)
    assert step(just_after, OPEN, stored=used, began_at=restart).reason == ""
    ends = step(just_after - 1 + GRACE_SECONDS, stored=used, began_at=restart)
    assert ends.reason == "idle for 30 minutes"


def test_a_restart_does_not_begin_the_timeout_anew():
    restart = after(HALF_AN_HOUR - GRACE_SECONDS - 60)
    assert step(HALF_AN_HOUR, began_at=restart).reason == "idle for 30 minutes"


def test_a_service_whose_timeout_is_short_does_not_wait_longer_after_a_restart():
    assert step(10, timeout=10, began_at=READY).reason == "idle for 10 seconds"


def test_a_clock_that_is_put_back_ends_nothing_and_keeps_nothing_for_ever():
    used = after(5 * 3600)
    corrected = step(60, stored=used)
    assert (corrected.reason, corrected.last_used_at) == ("", after(60))
    assert step(60 + HALF_AN_HOUR, stored=after(60)).reason == "idle for 30 minutes"


def test_a_service_that_became_ready_in_the_future_of_a_corrected_clock_is_idle_from_now():
    first = step(-3600)
    assert first.last_used_at == after(-3600)
    assert step(-3600 + HALF_AN_HOUR, stored=after(-3600)).reason == "idle for 30 minutes"


@pytest.mark.parametrize("began_at", [after(HALF_AN_HOUR + 10), after(10 * 86_400)])
def test_a_start_of_the_master_in_the_future_does_not_keep_a_service(began_at: datetime):
    assert step(HALF_AN_HOUR, began_at=began_at).reason == "idle for 30 minutes"


def test_a_use_before_the_present_attempt_does_not_count():
    assert step(HALF_AN_HOUR - 1, stored=after(-9000)).wait == 1.0


@pytest.mark.parametrize(
    ("service", "use", "since"),
    [
        (Service(READY, None), UNUSED, READY),
        (Service(READY, after(5)), UNUSED, after(5)),
        (Service(READY, after(5)), Use(last_end=after(9)), after(9)),
        (Service(READY, after(5)), OPEN, None),
        (Service(READY, after(9999)), UNUSED, READY),
    ],
)
def test_idle_since_is_the_newest_time_that_has_passed(service: Service, use: Use, since: datetime | None):
    assert idle_since(service, use, after(100)) == since


@pytest.mark.parametrize(
    ("asked", "limit", "holds", "warns"),
    [
        (None, None, None, ""),
        (None, 600.0, 600.0, ""),
        (600.0, 600.0, 600.0, ""),
        (60.0, 600.0, 60.0, ""),
        (
            5400.0,
            600.0,
            600.0,
            "the shell asked for idle_timeout 1 hour 30 minutes; this cluster ends a shell that was idle for 10 minutes "
            "(max_idle)",
        ),
        (
            0.0,
            600.0,
            600.0,
            "the shell asked for never to end when it is idle; this cluster ends a shell that was idle for 10 minutes "
            "(max_idle)",
        ),
        (0.0, None, None, ""),
    ],
)
def test_the_limit_of_the_cluster_holds_and_what_it_shortens_is_said(
    asked: float | None, limit: float | None, holds: float | None, warns: str
):
    assert allowed(asked, limit) == holds
    assert limit_warning(asked, limit, "shell") == warns
