"""Sign-in of the command line: the stored tokens, the order of sources, and hashed passwords."""

import hashlib
import json
import stat
from pathlib import Path

import pytest

from determined.client import auth_store, sign_in
from determined.errors import MasterUnreachable, Unauthenticated
from determined_cli import connection
from determined_cli.main import Globals, main

from .conftest import Det, FakeMaster, error

URL = "http://h:1"


def options(master: str | None = None, user: str | None = None) -> Globals:
    flags = Globals()
    flags.master, flags.user = master, user
    return flags


def test_the_auth_file_is_private_and_holds_tokens_by_master(home: Path) -> None:
    auth_store.remember("h:1", "ann", "T1")
    auth_store.remember("http://h:1/", "bob", "T2")
    auth_store.set_default_master("h:1")
    file = home / "config" / "detent" / "auth.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text()) == {
        "default_master": URL,
        "masters": {URL: {"tokens": {"ann": "T1", "bob": "T2"}, "active_user": "bob"}},
    }
    auth_store.forget(URL, "bob")
    auth_store.set_default_master(None)
    assert auth_store.read() == {
        "default_master": None,
        "masters": {URL: {"tokens": {"ann": "T1"}, "active_user": None}},
    }


@pytest.mark.parametrize("text", ["", "[]", "{", '{"masters": 3}', '{"masters": {"u": 1}}'])
def test_a_damaged_auth_file_is_read_as_empty(home: Path, text: str) -> None:
    file = auth_store.path()
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert auth_store.read() == {"default_master": None, "masters": {}}
    auth_store.remember(URL, "ann", "T")
    assert auth_store.token(auth_store.read(), URL, "ann") == "T"


def test_the_master_is_taken_from_flag_then_environment_then_login(home: Path) -> None:
    assert connection.master_url(options(), {}) == "http://localhost:8080"
    auth_store.set_default_master("http://default:1")
    assert connection.master_url(options(), {}) == "http://default:1"
    assert connection.master_url(options(), {"DET_MASTER": "env"}) == "http://env:8080"
    assert connection.master_url(options("flag:2"), {"DET_MASTER": "env"}) == "http://flag:2"
    with pytest.raises(MasterUnreachable):
        connection.master_url(options("ftp://x"), {})


def test_login_sends_the_salted_hash_and_stores_the_token(
    fake: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers["POST /api/v1/auth/login"] = {"token": "new", "user": {"username": "bob"}}
    monkeypatch.setenv("DET_PASS", "Secret12")
    assert det("user", "login", "bob").code == 0
    sent = fake.requests_to("POST /api/v1/auth/login")[0].json
    expected = hashlib.sha512(b"GubPEmmotfiK9TMD6ZdwSecret12").hexdigest()
    assert sent == {"username": "bob", "password": expected, "isHashed": True}
    store = auth_store.read()
    assert (auth_store.active_user(store, fake.url), auth_store.token(store, fake.url, "bob")) == ("bob", "new")


def test_a_wrong_password_prints_one_line_and_exits_with_5(
    fake: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers["POST /api/v1/auth/login"] = error(401, 16, "invalid credentials")
    monkeypatch.setenv("DET_PASS", "x")
    outcome = det("user", "login", "bob")
    assert (outcome.code, outcome.out, outcome.err) == (5, "", "det: invalid credentials\n")


def test_the_user_flag_overrides_the_environment_and_that_overrides_the_stored_login(
    fake: FakeMaster, det: Det
) -> None:
    fake.answers["POST /api/v1/auth/login"] = lambda request: {"token": f"by password of {request.json['username']}"}
    fake.answers["GET /api/v1/me"] = {"user": {"username": "x"}}

    def token(environ: dict[str, str], user: str | None = None) -> str | None:
        connection.connect(options(fake.url, user), environ).get("/api/v1/me")
        return fake.requests[-1].authorization

    assert token({}) == "Bearer T"
    assert token({}, "ann") == "Bearer T"
    assert token({"DET_USER": "bob", "DET_PASS": "p"}) == "Bearer by password of bob"
    assert token({"DET_USER": "bob", "DET_PASS": "p"}, "ann") == "Bearer T"
    assert token({"DET_USER": "bob", "DET_USER_TOKEN": "U"}) == "Bearer T"
    auth_store.forget(fake.url, "ann")
    assert token({"DET_USER": "bob", "DET_USER_TOKEN": "U"}) == "Bearer U"
    assert token({}) == "Bearer by password of determined"


def test_without_a_login_a_command_exits_with_5_and_names_det_user_login(fake: FakeMaster, det: Det) -> None:
    auth_store.forget(fake.url, "ann")
    fake.answers["POST /api/v1/auth/login"] = error(401, 16, "invalid credentials")
    outcome = det("e", "list")
    assert outcome.code == 5
    assert "det user login" in outcome.err
    with pytest.raises(Unauthenticated):
        connection.connect(options(fake.url, "bob"), {})


def test_logout_forgets_the_token_even_if_the_master_does_not_accept_it(det: Det, fake: FakeMaster) -> None:
    assert det("user", "logout").code == 0
    assert auth_store.token(auth_store.read(), fake.url, "ann") is None
    assert "not logged in to" in det("user", "logout").err


def test_logout_from_an_unreachable_master_forgets_the_token_and_reports_the_outage(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:1"
    auth_store.remember(url, "ann", "T")
    assert main(["-m", url, "user", "logout"]) == 0
    assert auth_store.token(auth_store.read(), url, "ann") is None
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("logged out on this machine, but the master could not be informed: ")
    assert captured.err.count("\n") == 1
    assert f"{url} does not answer" in captured.err


def test_an_unreachable_master_prints_one_line_and_exits_with_6(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    auth_store.remember("http://127.0.0.1:1", "ann", "T")
    assert main(["-m", "127.0.0.1:1", "user", "whoami"]) == 6
    captured = capsys.readouterr().err
    assert captured.count("\n") == 1
    assert "http://127.0.0.1:1 does not answer" in captured


def test_user_whoami_list_create_and_change_password_send_their_requests(fake: FakeMaster, det: Det) -> None:
    user = {"username": "ann", "id": 3, "admin": True, "active": True, "displayName": None, "remote": False}
    fake.answers.update(
        {
            "GET /api/v1/me": {"user": user},
            "GET /api/v1/users": {"users": [user]},
            "GET /api/v1/users/bob/by-username": {"user": {**user, "username": "bob", "id": 4}},
            "POST /api/v1/users": {"user": user},
            "PATCH /api/v1/users/4": {"user": user},
        }
    )
    assert det("u", "whoami").out == "You are logged in as user 'ann'\n"
    assert "ann" in det("u", "ls").out
    assert det("user", "create", "bob", "--password", "weak").code == 1
    assert det("user", "create", "bob", "--password", "Strong123").code == 0
    created = fake.requests_to("POST /api/v1/users")[0].json
    assert created == {
        "user": {"username": "bob", "admin": False, "active": True},
        "password": sign_in.hashed("Strong123"),
        "isHashed": True,
    }
    assert det("user", "change-password", "bob", "--password", "Strong123").code == 0
    assert fake.requests_to("PATCH /api/v1/users/4")[0].json["isHashed"] is True
