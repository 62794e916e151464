"""The ports that a configuration declares."""

import pytest

from determined.errors import NotFound
from determined_master.proxy.declared_ports import declared, default_port


def ports_of(*ports: dict[str, object]) -> int:
    return default_port(declared({"environment": {"proxy_ports": list(ports)}}), "1.a")


def test_the_marked_port_is_the_default_then_the_first_page_then_the_first():
    page, tcp = {"proxy_port": 80}, {"proxy_port": 22, "proxy_tcp": True}
    assert ports_of(tcp, page, {"proxy_port": 90, "default_service_id": True}) == 90
    assert ports_of(tcp, page) == 80
    assert ports_of(tcp) == 22


@pytest.mark.parametrize("config", [None, {}, {"environment": None}, {"environment": {"proxy_ports": None}}])
def test_a_task_without_ports_says_how_to_declare_one(config: dict[str, object] | None):
    with pytest.raises(NotFound, match="proxy_ports"):
        default_port(declared(config), "1.a")
