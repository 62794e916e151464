"""Cookies between browsers and tasks."""

import pytest

from determined_master.proxy import cookies

LABEL = "8888-0123456789abcdef"


@pytest.mark.parametrize(
    "given",
    [
        "auth=a",
        "auth_0123abcd=a",
        "__Host-auth_0123abcd=a",
        f"detent_task_{LABEL}=a",
        f"__Host-detent_task_{LABEL}=a",
        "detent_task_6006-x=a",
        "detent_of_6006-x_sid=a",
        "",
        "; ;",
    ],
)
def test_cookies_of_a_cluster_and_of_other_tasks_reach_no_task(given: str):
    assert cookies.for_task([given], LABEL) == ""
    assert cookies.for_task([f"own=1; {given}", given], LABEL) == "own=1"


@pytest.mark.parametrize("name", ["author", "auth_x", "auth_0123ABCD", "authorization", "AUTH"])
def test_cookies_with_similar_names_are_the_tasks_own(name: str):
    assert cookies.for_task([f"{name}=1"], LABEL) == f"{name}=1"


@pytest.mark.parametrize(
    "given",
    [
        "auth=x",
        " auth =x; Path=/detent",
        "auth_0123abcd=x",
        f"detent_task_{LABEL}=x",
        "detent_of_1-x_sid=x",
        "=auth=x",
        "x",
    ],
)
def test_a_task_sets_no_cookie_of_the_cluster(given: str):
    assert cookies.for_browser(given, LABEL) is None


def test_a_cookie_that_scripts_cannot_read_returns_under_its_own_name_to_its_task_alone():
    given = cookies.for_browser("sid=1=2; HttpOnly; domain=example.org; Max-Age=0", LABEL)
    assert given == f"detent_of_{LABEL}_sid=1=2; HttpOnly; Max-Age=0"
    assert cookies.for_task([given.partition(";")[0]], LABEL) == "sid=1=2"
    assert cookies.for_task([given.partition(";")[0]], "6006-x") == ""


def test_a_cookie_that_scripts_cannot_read_may_have_any_name():
    assert cookies.for_browser("auth=1; httponly", LABEL) == f"detent_of_{LABEL}_auth=1; httponly"


def test_every_value_of_a_repeated_cookie_is_found():
    assert cookies.values(["a=1; b=2", "a=3"], "a") == ["1", "3"]
