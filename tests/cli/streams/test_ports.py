"""Ports as they are given on the command line."""

import pytest

from determined.errors import BadRequest
from determined_cli.streams.port_forward import ports_of


@pytest.mark.parametrize(
    ("text", "ports"), [("8888", (8888, 8888)), ("9000:8888", (9000, 8888)), (":8888", (0, 8888)), ("0:1", (0, 1))]
)
def test_a_port_may_have_another_one_of_this_machine_before_it(text: str, ports: tuple[int, int]):
    assert ports_of(text) == ports


@pytest.mark.parametrize("text", ["", ":", "x", "1:x", "-1", "8888:", "65536", "1:0", "1:2:3", "٣", "1" * 5000])
def test_what_is_no_port_is_named(text: str):
    with pytest.raises(BadRequest, match="port"):
        ports_of(text)
