"""Fixtures of the folders whose tests are in this one."""

from tests.integration.conftest import cluster as cluster
from tests.master.db.conftest import database as database
from tests.master.db.test_group_commit import writer as writer
