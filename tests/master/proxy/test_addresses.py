"""Addresses of origins, and what is refused as one."""

import pytest

from determined.errors import BadRequest
from determined_master.proxy.addresses import Layout, Place, origin
from determined_master.settings.origin_template import problem


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1:8080", "http://localhost:8100"),
        ("localhost:8080", "http://127.0.0.1:8100"),
        ("[::1]:8080", "http://localhost:8100"),
        ("Cluster.Example", "http://cluster.example:8100"),
        ("[fd00::1]:8080", "http://[fd00::1]:8100"),
    ],
)
def test_a_port_is_at_the_host_of_the_cluster_but_on_loopback_at_its_other_name(host: str, address: str):
    assert origin(Layout(), Place("http", host), "80-a", 8100) == address


@pytest.mark.parametrize("host", ["", "a b", "a@b", "evil.example/x", "a:b"])
def test_what_is_no_host_makes_no_address(host: str):
    with pytest.raises(BadRequest, match="no host name"):
        origin(Layout(), Place("http", host), "80-a", 8100)


@pytest.mark.parametrize(
    ("template", "has_domain"),
    [
        ("https://{label}.tasks.example", False),
        ("https://{port}.tasks.example", True),
        ("{label}.tasks.example", True),
        ("ftp://{label}.tasks.example", True),
        ("https://{label}.tasks.example/path", True),
        ("https://{label}.{x}.example", True),
        ("https://u@{label}.example", True),
    ],
)
def test_a_template_that_is_no_origin_of_its_own_is_refused(template: str, has_domain: bool):
    assert problem(template, has_domain=has_domain)


def test_a_template_of_an_origin_is_taken():
    assert problem("https://cluster.example:{port}", has_domain=False) == ""
