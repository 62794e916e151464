"""Headers between browsers and tasks."""

from determined_master.proxy import headers

LABEL = "8888-a"


def passed(*given: tuple[str, str]) -> dict[str, str]:
    raw = [(name.encode(), value.encode()) for name, value in given]
    kept = headers.for_task(raw, label=LABEL, scheme="https", client="10.0.0.1")
    return {name.decode(): value.decode() for name, value in kept}


def answered(*given: tuple[str, str], may_cache: bool = False) -> list[tuple[str, str]]:
    raw = [(name.encode(), value.encode()) for name, value in given]
    return [(n.decode(), v.decode()) for n, v in headers.for_browser(raw, LABEL, may_cache=may_cache)]


def test_what_is_for_the_master_does_not_reach_a_task():
    kept = passed(
        ("host", "localhost:8100"),
        ("authorization", "Bearer secret"),
        ("x-detent-session", "1"),
        ("grpc-metadata-x-allocation-token", "Bearer x"),
        ("connection", "close, X-Mine"),
        ("x-mine", "1"),
        ("upgrade", "h2c"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-prefix", "/x"),
        ("forwarded", "for=6.6.6.6"),
        ("x-own", "2"),
    )
    assert kept == {
        "host": "localhost:8100",
        "x-own": "2",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "localhost:8100",
        "x-forwarded-for": "10.0.0.1",
    }


def test_an_applications_own_sign_in_reaches_it_if_it_is_no_bearer():
    assert passed(("authorization", "Basic eDp5"))["authorization"] == "Basic eDp5"
    assert "authorization" not in passed(("authorization", "bearer x"))


def test_a_body_of_unknown_length_stays_one():
    assert passed(("transfer-encoding", "chunked"))["transfer-encoding"] == "chunked"


def test_headers_for_all_ports_of_the_host_are_left_out_and_protection_is_added():
    kept = answered(
        ("Strict-Transport-Security", "max-age=1"),
        ("Clear-Site-Data", '"cookies"'),
        ("Cross-Origin-Resource-Policy", "cross-origin"),
        ("Cache-Control", "max-age=9"),
        ("ETag", "x"),
        ("Content-Security-Policy", "default-src *"),
    )
    assert kept == [
        ("content-security-policy", "default-src *"),
        ("cache-control", "no-store"),
        ("content-security-policy", "frame-ancestors 'self'"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
    ]


def test_answers_may_be_cached_where_the_origin_is_the_tasks_for_ever():
    assert ("etag", "x") in answered(("ETag", "x"), may_cache=True)
