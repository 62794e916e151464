"""The thread that asks the master whether an attempt has to end."""

from typing import Any

from determined.client.preemption_watch import Watcher


class Silent:
    """A session of a master that does not answer."""

    def close(self) -> None: ...

    def get(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("it is closed before it asks")


def test_whoever_waits_for_the_first_answer_goes_on_when_the_watch_is_closed() -> None:
    watch = Watcher(Silent(), "1.1", on_gone=print)  # type: ignore[arg-type]
    watch.start()
    watch.close()
    assert watch.first_answer() is False
