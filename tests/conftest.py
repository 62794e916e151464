"""Options of pytest and settings of all tests.

``pytest --postgresql`` runs the masters of the tests on databases of a PostgreSQL server instead of SQLite. Ctrl-C
works in programs that tests start, however the tests were started.
"""

import os
import signal

import hypothesis
import pytest
from tests.support.postgresql import FAST, VARIABLE, Server
from tests.support.time_budget import pytest_runtest_call as pytest_runtest_call
from tests.support.time_budget import pytest_runtest_makereport as pytest_runtest_makereport

_server = pytest.StashKey[Server]()
# Whether a run passes depends on the code alone: neither on the machine's load nor on new examples, which `make test-long`
# draws (``--hypothesis-profile default``).
hypothesis.settings.register_profile("same examples", deadline=None, derandomize=True)
hypothesis.settings.load_profile("same examples")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgresql", action="store_true", help="run the tests' masters on PostgreSQL")


def pytest_configure(config: pytest.Config) -> None:
    # A shell makes its background jobs ignore SIGINT, and their children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--postgresql") and VARIABLE not in os.environ:
        server = Server(**FAST)
        server.start()
        config.stash[_server] = server
        os.environ[VARIABLE] = server.url  # the workers of pytest-xdist inherit it


def pytest_unconfigure(config: pytest.Config) -> None:
    server = config.stash.get(_server, None)
    if server is not None:
        server.close()


@pytest.hookimpl(trylast=True)  # after the fixtures
def pytest_runtest_teardown() -> None:
    if VARIABLE in os.environ:
        from tests.support.emptied_databases import end_test

        end_test()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--postgresql"):
        for item in items:
            if item.get_closest_marker("sqlite"):
                item.add_marker(pytest.mark.skip(reason="a test of the SQLite file"))
