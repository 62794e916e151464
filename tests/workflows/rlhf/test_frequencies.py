"""When something is due by steps, epochs and seconds, and how that continues after a pause."""

from determined_workflows.rlhf.task.frequencies import Frequency


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_due_without_a_limit() -> None:
    frequency = Frequency()
    assert not any(frequency.is_due(ends_epoch=True) for _ in range(10))


def test_steps_are_counted_from_the_last_time_it_was_due() -> None:
    frequency = Frequency(steps=3)
    assert [frequency.is_due() for _ in range(6)] == [False, False, True, False, False, True]


def test_epochs_are_due_at_their_end_only() -> None:
    frequency = Frequency(epochs=2)
    ends = [False, True, False, True, False]
    assert [frequency.is_due(ends_epoch=end) for end in ends] == [False, False, False, True, False]


def test_seconds_are_due_when_they_have_passed() -> None:
    clock = Clock()
    frequency = Frequency(seconds=10, clock=clock)
    clock.now += 9.9
    assert not frequency.is_due()
    clock.now += 0.1
    assert frequency.is_due()
    assert not frequency.is_due()


def test_a_restored_frequency_continues_without_the_time_of_the_pause() -> None:
    clock = Clock()
    first = Frequency(steps=3, seconds=10, clock=clock)
    first.is_due()
    clock.now += 4
    state = first.state_dict()
    clock.now += 1000
    second = Frequency(steps=3, seconds=10, clock=clock)
    second.load_state_dict(state)
    clock.now += 5.9
    assert not second.is_due()
    clock.now += 0.2
    assert second.is_due()
