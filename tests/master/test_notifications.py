"""Waiting for a notification of some topics."""

import asyncio

from determined_master.notifications import Notifications, Subscription


async def asleep(subscription: Subscription) -> "asyncio.Task[bool]":
    """Returns the waiting task."""
    waiting = asyncio.create_task(subscription.wait(3600.0))
    await asyncio.sleep(0)
    return waiting


async def test_a_waiting_subscription_is_woken_by_its_topics_only():
    notifications = Notifications()
    async with notifications.subscribe("a", "b") as subscription:
        waiting = await asleep(subscription)
        notifications.publish({"c"})
        await asyncio.sleep(0)
        assert not waiting.done()
        notifications.publish({"b"})
        assert await waiting
        assert not await subscription.wait(0.0)


async def test_a_notification_before_the_wait_is_not_lost_and_counts_once():
    notifications = Notifications()
    async with notifications.subscribe("a") as subscription:
        notifications.publish({"a"})
        notifications.publish({"a"})
        assert await subscription.wait(3600.0)
        assert not await subscription.wait(0.0)


async def test_a_notification_at_the_end_of_a_wait_is_kept_for_the_next_wait():
    notifications = Notifications()
    async with notifications.subscribe("a") as subscription:
        waiting = asyncio.create_task(subscription.wait(0.0))
        waiting.add_done_callback(lambda _: notifications.publish({"a"}))
        assert not await waiting
        assert await subscription.wait(3600.0)


async def test_forgotten_notifications_wake_nobody():
    notifications = Notifications()
    async with notifications.subscribe("a") as subscription:
        notifications.publish({"a"})
        subscription.forget()
        assert not await subscription.wait(0.0)


async def test_a_cancelled_wait_leaves_the_subscription_as_it_was():
    notifications = Notifications()
    async with notifications.subscribe("a") as subscription:
        waiting = await asleep(subscription)
        waiting.cancel()
        await asyncio.wait({waiting})
        notifications.publish({"a"})
        assert await subscription.wait(3600.0)


async def test_closing_wakes_every_waiting_subscription():
    notifications = Notifications()
    async with notifications.subscribe("a") as subscription:
        waiting = await asleep(subscription)
        notifications.close()
        assert await waiting
        assert await subscription.wait(3600.0)
    assert not notifications.has_subscribers("a")
