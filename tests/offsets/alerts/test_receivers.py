"""The file of receivers: what it may say, and how its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import SettingsWrapper

from kcoord.secret_tables import SecretTablesError
from offsets.alerts.receivers import read_receivers
from offsets.apps import receivers_can_be_told


def written(tmp_path: Path, text: str, mode: int = 0o600) -> str:
    path = tmp_path / "receivers.toml"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_programs_and_people(tmp_path: Path) -> None:
    text = '[hook]\nwebhook = "https://a.example/x"\nsecret = "s"\n[chat]\nurl = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"\n'
    found = read_receivers(written(tmp_path, text))
    assert {name: receiver.kind for name, receiver in found.items()} == {"hook": "webhook", "chat": "slack"}
    assert "a.example" not in repr(found["hook"])
    assert found["hook"].secret == "s"


def test_without_a_file_there_are_none() -> None:
    assert read_receivers("") == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[a", "is not TOML"),
        ("a = 1", "receiver 'a': expected a table"),
        ("[a]\nurl = 5", "receiver 'a': expected a table"),
        ('["a b"]\nurl = "x"', "receiver 'a b': a name has"),
        ("[a]", "give either a webhook or a url"),
        ('[a]\nurl = "mailto://x"\nwebhook = "http://x"', "give either a webhook or a url"),
        ('[a]\nwebhook = "ftp://hidden/x"', "not an http or https address"),
        ('[a]\nurl = "nonsense://hidden"', "Apprise does not know the url"),
        ('[a]\nurl = "mailto://u:p@b.example"\nsecret = "hidden"', "a secret belongs to a webhook"),
        ('[a]\ncolor = "hidden"', "unknown field 'color'"),
    ],
)
def test_a_mistake_names_the_receiver_and_no_address(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SecretTablesError) as error:
        read_receivers(written(tmp_path, text))
    assert told in str(error.value)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o620, 0o602])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SecretTablesError, match="chmod 600"):
        read_receivers(written(tmp_path, "", mode))


def test_its_group_may_read_it(tmp_path: Path) -> None:
    assert read_receivers(written(tmp_path, "", 0o440)) == {}


def test_a_bad_file_prevents_the_start(tmp_path: Path, settings: SettingsWrapper) -> None:
    settings.KCOORD = settings.KCOORD.override({"alerts.receivers.file": written(tmp_path, "[a]")})
    (found,) = receivers_can_be_told(None)
    assert (found.id, "receiver 'a'" in found.msg) == ("kcoord.E005", True)
    settings.KCOORD = settings.KCOORD.override({"alerts.receivers.file": ""})
    assert receivers_can_be_told(None) == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SecretTablesError, match="cannot be read"):
        read_receivers(str(tmp_path / "none"))
