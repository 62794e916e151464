"""``pytest --postgresql``: masters of the tests run on databases of a PostgreSQL server instead of SQLite."""

import os

import pytest
from tests.support.postgresql import FAST, VARIABLE, Server

_server = pytest.StashKey[Server]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgresql", action="store_true", help="run the tests' masters on PostgreSQL")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--postgresql") and VARIABLE not in os.environ:
        server = Server(**FAST)
        server.start()
        config.stash[_server] = server
        os.environ[VARIABLE] = server.url  # the workers of pytest-xdist inherit it


def pytest_unconfigure(config: pytest.Config) -> None:
    server = config.stash.get(_server, None)
    if server is not None:
        server.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--postgresql"):
        for item in items:
            if item.get_closest_marker("sqlite"):
                item.add_marker(pytest.mark.skip(reason="a test of the SQLite file"))
