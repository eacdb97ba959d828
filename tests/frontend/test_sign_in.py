"""Sign-in, and how it slows down who guesses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import Client

from frontend.pages.sign_in import view as throttle
from tests.frontend.conftest import PASSWORD
from tests.frontend.seed import Seed, now_ms

pytestmark = pytest.mark.usefixtures("long_waits")


@pytest.fixture(autouse=True)
def mara(seed: Seed) -> None:
    """Somebody with an account."""
    get_user_model().objects.create_user("mara", password=PASSWORD)


def sign_in(client: Client, username: str = "mara", password: str = "wrong", address: str = "10.1.1.1", **more: str):
    return client.post("/sign-in", {"username": username, "password": password, **more}, REMOTE_ADDR=address)


def wait_of(answer: HttpResponse) -> int:
    """What `Retry-After` says, in the seconds that waits have outside of the tests."""
    return -(-int(answer.headers["Retry-After"]) // 100)


def failures(seed: Seed, key: throttle.Key) -> int | None:
    row = seed.connection.execute("select failures from frontend_signinattempt where key = %s", [key.key]).fetchone()
    return None if row is None else int(row[0])


def test_the_right_password_opens_the_page_that_was_asked_for(client: Client) -> None:
    answer = sign_in(client, password=PASSWORD, next="/groups/billing")
    assert answer.headers["Location"] == "/groups/billing"
    assert client.get("/groups").status_code == 200


def test_no_address_of_another_host_is_opened_after_signing_in(client: Client) -> None:
    answer = sign_in(client, password=PASSWORD, next="https://elsewhere.example/")
    assert answer.headers["Location"] == "/"


def test_wrong_password_and_unknown_account_are_told_apart_by_nobody(client: Client) -> None:
    known, unknown = sign_in(client), sign_in(client, username="nobody")
    assert known.status_code == unknown.status_code == 200
    assert known.content.decode().replace("mara", "nobody").count("Wrong user name or password") == 1
    assert unknown.content.decode().count("Wrong user name or password") == 1


def test_after_five_failures_the_account_waits_even_for_the_right_password(client: Client) -> None:
    for number in range(throttle.FREE_FOR_ACCOUNT):
        assert sign_in(client, address=f"10.1.1.{number}").status_code == 200
    answer = sign_in(client, password=PASSWORD, address="10.1.1.99")
    assert answer.status_code == 429
    assert wait_of(answer) == 1
    assert f"Try again in {answer.headers['Retry-After']} seconds." in answer.content.decode()
    assert client.get("/groups").status_code == 302


def test_waiting_ends_and_success_starts_afresh(client: Client, seed: Seed) -> None:
    key = throttle.account_key("mara")
    for number in range(throttle.FREE_FOR_ACCOUNT):
        sign_in(client, address=f"10.1.1.{number}")
    seed.connection.execute("update frontend_signinattempt set last_at = last_at - 100000 where key = %s", [key.key])
    assert sign_in(client, password=PASSWORD, address="10.1.1.99").status_code == 302
    assert failures(seed, key) is None


def test_the_wait_doubles_up_to_a_minute_and_no_further(client: Client, seed: Seed) -> None:
    key = throttle.account_key("mara")
    waits = []
    for count in (5, 6, 7, 10, 11, 40, 2_000_000_000):
        seed.connection.execute("delete from frontend_signinattempt")
        seed.connection.execute("insert into frontend_signinattempt values (%s, %s, %s)", [key.key, count, now_ms()])
        waits.append(wait_of(sign_in(client)))
    assert waits == [1, 2, 4, 32, 60, 60, 60]


def test_an_attempt_that_has_to_wait_does_not_prolong_the_wait(client: Client, seed: Seed) -> None:
    for number in range(throttle.FREE_FOR_ACCOUNT):
        sign_in(client, address=f"10.1.1.{number}")
    for number in range(5):
        assert sign_in(client, address=f"10.1.2.{number}").status_code == 429
    assert failures(seed, throttle.account_key("mara")) == throttle.FREE_FOR_ACCOUNT


def test_a_quarter_of_an_hour_forgets(client: Client, seed: Seed) -> None:
    for number in range(throttle.FREE_FOR_ACCOUNT):
        sign_in(client, address=f"10.1.1.{number}")
    seed.connection.execute("update frontend_signinattempt set last_at = last_at - %s", [throttle.FORGET_MS + 1])
    assert sign_in(client).status_code == 200
    assert failures(seed, throttle.account_key("mara")) == 1


def test_one_address_may_not_try_many_accounts(client: Client) -> None:
    for number in range(throttle.FREE_FOR_ADDRESS):
        assert sign_in(client, username=f"somebody-{number}").status_code == 200
    assert sign_in(client, username="another").status_code == 429
    assert sign_in(client, username="another", address="10.1.1.2").status_code == 200


@pytest.mark.parametrize(
    "spelling",
    ["ｍａｒａ", "ⓜara", " mara\u3000", "MARA", "ＭARA", "𝐦ara", "ᴹara"],
    ids=["full width", "circled", "spaces", "capitals", "full-width capitals", "mathematical", "superscript"],
)
def test_spellings_of_one_account_count_as_one(client: Client, seed: Seed, spelling: str) -> None:
    sign_in(client)
    sign_in(client, spelling)
    assert failures(seed, throttle.account_key("mara")) == 2


def test_guessing_under_one_spelling_after_the_other_uses_up_the_free_attempts(client: Client, seed: Seed) -> None:
    """Each of them is the account to Django."""
    spellings = ["mara", "ｍara", "mａra", "maｒa", "marａ"]
    assert sign_in(client, spellings[1], PASSWORD).status_code == 302
    client.logout()
    for number, spelling in enumerate(spellings):
        assert sign_in(client, spelling, address=f"10.1.1.{number}").status_code == 200
    assert failures(seed, throttle.account_key("mara")) == throttle.FREE_FOR_ACCOUNT


def test_names_that_fold_into_the_same_have_one_key_and_others_have_not() -> None:
    assert throttle.account_key("STRASSE") == throttle.account_key("straße")
    assert throttle.account_key("ﬁne") == throttle.account_key("FINE")
    assert throttle.account_key("Å") == throttle.account_key("a\u030a")
    assert throttle.account_key("mara") != throttle.account_key("marа")  # the last letter is Cyrillic
    assert throttle.account_key("a" * 300) != throttle.account_key("a" * 301)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", True),
        ("2001:db8:1:2::1", "2001:0DB8:0001:0002:0000::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:10.1.1.1", "10.1.1.1", True),
        ("::ffff:a01:101", "10.1.1.1", True),
        ("::ffff:10.1.1.1", "::ffff:10.1.1.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("10.1.1.1", "10.1.1.2", False),
        ("", "not an address", False),
    ],
)
def test_addresses_of_one_subscriber_have_one_key(one: str, other: str, same: bool) -> None:
    assert (throttle.address_key(one) == throttle.address_key(other)) is same


def test_addresses_of_one_ipv6_network_use_up_the_same_attempts(client: Client, seed: Seed) -> None:
    for number in range(throttle.FREE_FOR_ADDRESS):
        assert sign_in(client, username=f"somebody-{number}", address=f"2001:db8::{number:x}").status_code == 200
    assert failures(seed, throttle.address_key("2001:db8::ffff")) == throttle.FREE_FOR_ADDRESS
    assert sign_in(client, username="another", address="2001:db8:0:1::1").status_code == 200


def test_success_gives_the_address_back_one_attempt_and_no_more(client: Client, seed: Seed) -> None:
    for number in range(3):
        sign_in(client, username=f"somebody-{number}")
    sign_in(client, password=PASSWORD)
    assert failures(seed, throttle.address_key("10.1.1.1")) == 3


def test_attempts_at_the_same_moment_cannot_all_pass(seed: Seed) -> None:
    from django.db import connections

    def attempt(number: int) -> int:
        try:
            return throttle.count_attempt("mara", f"10.2.{number}.1")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(attempt, range(24)))
    assert sum(wait == 0 for wait in waits) == throttle.FREE_FOR_ACCOUNT


def test_what_is_typed_as_a_name_is_not_stored(client: Client, seed: Seed) -> None:
    sign_in(client, username="my secret password")
    stored = [row[0] for row in seed.connection.execute("select key from frontend_signinattempt")]
    assert not any("secret" in key for key in stored)


def change_password(client: Client, old: str, new: str = "another password 7"):
    form = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/password", form, REMOTE_ADDR="10.1.1.1")


def test_a_session_does_not_help_to_guess_the_password(client: Client, seed: Seed) -> None:
    sign_in(client, password=PASSWORD)
    for _ in range(5):
        assert change_password(client, "wrong").status_code == 200
    answer = change_password(client, PASSWORD)
    assert answer.status_code == 429
    assert wait_of(answer) == 1
    seconds = answer.headers["Retry-After"]
    assert f'data-seconds="{seconds}" aria-hidden="true">Try again in {seconds} seconds.' in answer.content.decode()
    assert "countdown.js" in answer.content.decode()
    assert get_user_model().objects.get(username="mara").check_password(PASSWORD)
    assert sign_in(Client(), password=PASSWORD).status_code == 429, "one count for both forms"


def test_a_new_password_that_is_refused_is_no_failed_attempt(client: Client, seed: Seed) -> None:
    sign_in(client, password=PASSWORD)
    for _ in range(8):
        assert change_password(client, PASSWORD, new="7").status_code == 200
    assert change_password(client, PASSWORD).status_code == 302


def test_the_admin_has_no_sign_in_of_its_own(client: Client) -> None:
    answer = client.get("/admin/login/?next=/admin/")
    assert 'action="/sign-in"' in answer.content.decode()
    for number in range(throttle.FREE_FOR_ACCOUNT):
        sign_in(client, address=f"10.1.1.{number}")
    guess = client.post("/admin/login/", {"username": "mara", "password": PASSWORD}, REMOTE_ADDR="10.1.1.50")
    assert guess.status_code == 429


def test_the_admin_has_no_form_for_passwords_of_its_own(operator: Client) -> None:
    for answer in (operator.get("/admin/password_change/"), operator.post("/admin/password_change/")):
        assert (answer.status_code, answer.headers["Location"]) == (302, "/password")


def test_an_account_without_rights_to_the_admin_is_refused_there(person: Client) -> None:
    assert person.get("/admin/", follow=True).status_code == 403


@pytest.fixture
def person(client: Client) -> Client:
    """Somebody who has signed in and is nobody special."""
    client.force_login(get_user_model().objects.get(username="mara"))
    return client
