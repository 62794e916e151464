"""Ports as `det task open` takes them."""

import pytest

from determined.errors import BadRequest
from determined_cli.task.pages import port_of


@pytest.mark.parametrize(("text", "port"), [(None, None), ("1", 1), ("65535", 65535)])
def test_a_port_may_be_left_out(text: str | None, port: int | None):
    assert port_of(text) == port


@pytest.mark.parametrize("text", ["", "0", "65536", "-1", "x", "80:80", "٣", "1" * 5000])
def test_what_is_no_port_is_named(text: str):
    with pytest.raises(BadRequest, match="port"):
        port_of(text)
