"""What a configuration says about ports of a task, and what it is told."""

from determined.config import check


def test_an_unauthenticated_port_is_warned_about_with_the_reason():
    text = "entrypoint: x\nsearcher: {name: single, metric: loss}\nenvironment:\n  proxy_ports:\n    - {proxy_port: 8080, unauthenticated: true}\n"
    checked = check(text, name="exp.yaml")
    (warning,) = [each for each in checked.diagnostics if each.code == "W503"]
    assert (warning.line, warning.message) == (5, '"environment.proxy_ports[0].unauthenticated" has no effect')
    assert "owner and admins alone open the port" in str(warning.hint)


def test_a_declared_port_and_its_default_are_taken_without_a_warning():
    text = "entrypoint: x\nsearcher: {name: single, metric: loss}\nenvironment:\n  proxy_ports:\n    - {proxy_port: 8080, default_service_id: true}\n"
    assert [each.code for each in check(text).diagnostics if each.code == "W503"] == []
