"""Errors of requests, as answers and in the log."""

import pytest
from starlette.requests import ClientDisconnect

from determined_master.api.errors import translate


def test_a_client_that_goes_away_leaves_nothing_in_the_log(caplog: pytest.LogCaptureFixture):
    assert translate(ClientDisconnect()).status == 400
    assert caplog.text == ""
