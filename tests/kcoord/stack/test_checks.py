"""System checks and the commands that an operator uses."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.test import override_settings

from kcoord.access import tokens
from kcoord.access.tokens import Rule
from kcoord.checks import TAG
from kcoord.config import BASE_DIR, Config
from kcoord.models import ApiToken
from kcoord.setting_table import SETTINGS
from tests.support.processes import start


def ids(environ: dict[str, str], **options: bool) -> list[str | None]:
    """The ids of what the checks find in an environment."""
    with override_settings(KCOORD=Config.from_env(environ)):
        return [message.id for message in run_checks(tags=[TAG], **options)]


def test_the_defaults_pass() -> None:
    assert ids({}) == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"KCOORD_PORT": "0"}, "kcoord.E001"),
        ({"KCOORD_COLOUR": "red"}, "kcoord.E001"),
        ({"KCOORD_SECURE_COOKIES": "yes"}, "kcoord.E001"),
        ({"KCOORD_GROUP_MIN_SESSION_TIMEOUT_MS": "2000000"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": "44999"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": "60001"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": "4999"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": "15001"}, "kcoord.E001"),
        (
            {
                "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": "15000",
                "KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": "15000",
                "KCOORD_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS": "15000",
            },
            "kcoord.E001",
        ),
        ({"KCOORD_GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS": "15001"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS": "1"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_MAX_SIZE": "0"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS": "9999"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_MIGRATION_POLICY": "sometimes"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_ASSIGNORS": ""}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_ASSIGNORS": "range,range"}, "kcoord.E001"),
        ({"KCOORD_GROUP_CONSUMER_ASSIGNORS": "sticky"}, "kcoord.E004"),
        ({"KCOORD_GROUP_COORDINATOR_REBALANCE_PROTOCOLS": "consumer"}, "kcoord.E001"),
        ({"KCOORD_GROUP_COORDINATOR_REBALANCE_PROTOCOLS": "classic,share"}, "kcoord.E001"),
        ({"KCOORD_ADVERTISED_URL": "kcoord.example"}, "kcoord.E002"),
        ({"KCOORD_ADVERTISED_URL": "http://host:99999"}, "kcoord.E002"),
        ({"KCOORD_DATABASE_URL": "mysql://localhost/x"}, "kcoord.E002"),
        ({"KCOORD_BROKER_URL": "localhost"}, "kcoord.E002"),
        ({"KCOORD_ALLOWED_HOSTS": "a.example, b.example"}, "kcoord.E002"),
        ({"KCOORD_TRUSTED_PROXIES": "*"}, "kcoord.E002"),
        ({"KCOORD_OTLP_ENDPOINT": "collector:4317"}, "kcoord.E002"),
        ({"KCOORD_TRUSTED_PROXIES": "10.0.0.0/8,proxy.example"}, "kcoord.E002"),
        ({"KCOORD_SECRET_KEY": "short"}, "kcoord.E003"),
        ({"KCOORD_COORDINATOR_ROUTING": "leader"}, "kcoord.E001"),
        ({"KCOORD_COORDINATOR_LEASE_MS": "2999"}, "kcoord.E001"),
        ({"KCOORD_REQUEST_MAX_AGE_MS": "4499"}, "kcoord.E001"),
        ({"KCOORD_TIMER_TICK_BATCH": "200"}, "kcoord.E001"),
        ({"KCOORD_DATABASE_TRANSACTION_TIMEOUT_MS": "1500"}, "kcoord.E001"),
        ({"KCOORD_COORDINATOR_LEASE_MS": "3001"}, "kcoord.W005"),
        ({"KCOORD_GROUP_MIN_SESSION_TIMEOUT_MS": "5999"}, "kcoord.W005"),
    ],
)
def test_what_cannot_be_used_is_an_error(environ: dict[str, str], expected: str) -> None:
    assert ids(environ) == [expected]


@pytest.mark.parametrize(
    ("variable", "meant"),
    [("KCOORD_PROT", "KCOORD_PORT"), ("KCOORD_DATADIR", "KCOORD_DATA_DIR"), ("KCOORD_XYZZY", None)],
)
def test_a_variable_that_is_misspelled_is_told_what_may_be_meant(variable: str, meant: str | None) -> None:
    (problem,) = Config.from_env({variable: "1"}).problems
    assert problem.startswith(f"{variable}: ")
    assert (f"did you mean {meant}?" in problem) == (meant is not None)
    assert ("did you mean" in problem) == (meant is not None)


def test_names_are_read_whatever_their_case_and_spaces() -> None:
    config = Config.from_env(
        {
            "KCOORD_GROUP_CONSUMER_MIGRATION_POLICY": "UpGrade",
            "KCOORD_GROUP_CONSUMER_ASSIGNORS": " range , uniform",
            "KCOORD_GROUP_COORDINATOR_REBALANCE_PROTOCOLS": "classic",
        }
    )
    assert config.problems == ()
    assert config.str("group.consumer.migration.policy") == "upgrade"
    assert config.names("group.consumer.assignors") == ("range", "uniform")
    assert config.names("group.coordinator.rebalance.protocols") == ("classic",)


def test_an_archive_lies_beside_the_embedded_postgres_alone(tmp_path: Path) -> None:
    """Not with another Postgres: an upgrade starts no archive that nobody asked for."""

    def path(**environ: str) -> str:
        return Config.from_env({f"KCOORD_{name}": value for name, value in environ.items()}).str("archive.path")

    assert path(DATA_DIR=str(tmp_path)) == str(tmp_path / "archive")
    assert path() == str(BASE_DIR / ".kcoord" / "archive")
    assert path(DATABASE_URL="postgres://db.example/kcoord") == ""
    assert path(ARCHIVE_PATH="") == ""
    assert path(ARCHIVE_PATH="/srv/archive", DATA_DIR=str(tmp_path)) == "/srv/archive"


def test_listening_to_other_machines_needs_names_and_tls() -> None:
    assert ids({"KCOORD_HOST": "0.0.0.0"}) == ["kcoord.W001", "kcoord.W002"]
    assert ids({"KCOORD_HOST": "::1"}) == []
    safe = {"KCOORD_HOST": "0.0.0.0", "KCOORD_SECURE_COOKIES": "true", "KCOORD_ALLOWED_HOSTS": "kcoord.example"}
    assert ids(safe) == []


def test_a_key_that_is_not_kept_is_told_before_a_deployment(tmp_path: Path) -> None:
    with override_settings(DATA_DIR=tmp_path):
        assert ids(TLS, include_deployment_checks=True) == ["kcoord.W003"]
        assert ids({**TLS, "KCOORD_SECRET_KEY": "k" * 32}, include_deployment_checks=True) == []
        (tmp_path / "secret_key").write_text("k" * 32)
        assert ids(TLS, include_deployment_checks=True) == []


TLS = {"KCOORD_SECURE_COOKIES": "true"}


def check_deploy(**env: object) -> str:
    """What the command to run before a deployment tells an operator."""
    with start("check", ["manage.py", "check", "--deploy"], None, env, forked=True) as running:
        running.wait(60)
        return running.output


def test_a_deployment_is_told_only_what_a_setting_can_change() -> None:
    found = re.findall(r"^\?: \((.*?)\) (.*)\n\tHINT: (.*)", check_deploy(KCOORD_HOST="127.0.0.1"), re.M)
    assert {name for name, _, _ in found} >= {"kcoord.W003"}
    assert len(found) >= 2
    for name, problem, hint in found:
        assert name.startswith("kcoord."), name
        assert "KCOORD_" in problem + hint
    followed = {
        "KCOORD_SECURE_COOKIES": "true",
        "KCOORD_ALLOWED_HOSTS": "kcoord.example",
        "KCOORD_SECRET_KEY": "k" * 32,
    }
    assert "no issues" in check_deploy(KCOORD_HOST="0.0.0.0", **followed)


def reference(*arguments: str) -> str:
    """What `manage.py settings_reference` prints."""
    out = StringIO()
    call_command("settings_reference", *arguments, stdout=out)
    return out.getvalue()


def test_the_reference_lists_every_setting_with_all_there_is_to_know() -> None:
    listed = {entry["name"]: entry for entry in json.loads(reference("--format", "json"))}
    assert list(listed) == [setting.name for setting in SETTINGS]
    for setting in SETTINGS:
        assert listed[setting.name]["default"] == setting.default
        assert listed[setting.name]["unit"] == setting.unit
        assert listed[setting.name]["help"] == setting.help


def test_the_reference_is_readable_and_can_be_searched() -> None:
    found = reference("max.body")
    assert found.startswith("KCOORD_HTTP_MAX_BODY_BYTES=1048576\n")
    assert "in bytes; 1024 to 1073741824" in found
    assert "KCOORD_PORT" not in found
    assert "| `KCOORD_LOG_LEVEL` | `info` | level | debug \\| info" in reference("--format", "markdown", "log.level")


def test_the_reference_keeps_secrets() -> None:
    with override_settings(KCOORD=Config({"database.url": "postgresql://u:topsecret@h/d", "port": 9000})):
        printed = reference() + reference("--format", "json")
        assert "topsecret" not in printed
        assert "KCOORD_DATABASE_URL=(set)" in printed
        assert "KCOORD_PORT=9000 (default 8000)" in printed


def test_a_token_can_be_made_on_the_command_line(database: str) -> None:
    out, err = StringIO(), StringIO()
    options = ["--allow", "read:group:billing-*", "--allow", "describe:topic:orders", "--days", "30"]
    call_command("create_token", "billing", *options, stdout=out, stderr=err)
    secret = out.getvalue().strip()
    token = ApiToken.objects.get(digest=tokens.digest(secret))
    assert set(token.rules.values_list("operation", "resource", "pattern", "name")) == {
        ("read", "group", "prefix", "billing-"),
        ("describe", "topic", "literal", "orders"),
    }
    assert token.expires_at is not None
    assert token.expires_at == pytest.approx(token.created_at + 30 * 86_400_000, abs=60_000)
    assert secret not in err.getvalue()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["x"], "a token needs rules"),
        (["x", "--allow", "write:group:a"], "the operation must be one of"),
        (["x", "--allow", "read:queue:a"], "the resource must be one of"),
        (["x", "--allow", "read:group:"], "the name is missing"),
        (["x", "--allow", "read"], "expected operation:resource:name"),
        (["x", "--allow-all", "--days", "0"], "must be at least 1"),
        (["  ", "--allow-all"], "needs a name"),
        (["taken", "--allow-all"], "already"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(database: str, arguments: list[str], problem: str) -> None:
    tokens.create_token("taken", [Rule("read", "group", "literal", "a")])
    with pytest.raises(CommandError, match=problem):
        call_command("create_token", *arguments, stdout=StringIO(), stderr=StringIO())
    assert ApiToken.objects.count() == 1


def test_secrets_are_long_and_told_apart_by_their_start() -> None:
    first, second = tokens.generate_secret(), tokens.generate_secret()
    assert first != second
    assert first.startswith("kc_")
    assert len(first) == 3 + 43
    assert tokens.prefix(first) == first[:8]
    assert len(tokens.digest(first)) == 64
    assert tokens.parse_rule("admin:group:*") == Rule("admin", "group", "prefix", "")
    assert tokens.parse_rule("read:group:a:b*") == Rule("read", "group", "prefix", "a:b")


def test_a_node_that_owners_are_sent_to_needs_an_address() -> None:
    alone = Config.from_env({"KCOORD_COORDINATOR_ROUTING": "owner", "KCOORD_HOST": "0.0.0.0"})
    assert alone.problems == (
        "advertised.url is needed for coordinator.routing=owner: 0.0.0.0 is not an address to go to",
    )
    named = {"KCOORD_ADVERTISED_URL": "http://a.example:8000", "KCOORD_COORDINATOR_ROUTING": "owner"}
    assert Config.from_env({**named, "KCOORD_HOST": "0.0.0.0"}).problems == ()


PROVIDER = {
    "KCOORD_OIDC_ISSUER": "https://id.example",
    "KCOORD_OIDC_CLIENT_ID": "kcoord",
    "KCOORD_OIDC_ALLOWED_GROUPS": "*",
}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"KCOORD_OIDC_ISSUER": "http://127.0.0.1:9/realm"}, ""),
        ({"KCOORD_OIDC_ISSUER": "http://id.example"}, "oidc.issuer must be an https:// address"),
        ({"KCOORD_OIDC_ISSUER": "https://user:pw@id.example"}, "oidc.issuer must be an https:// address"),
        ({"KCOORD_OIDC_ISSUER": ""}, "oidc.issuer is needed for oidc.client.id"),
        ({"KCOORD_OIDC_CLIENT_ID": ""}, "oidc.client.id is needed"),
        ({"KCOORD_OIDC_ALLOWED_GROUPS": " ; "}, "oidc.allowed.groups is needed"),
        ({"KCOORD_OIDC_SCOPES": "profile"}, "oidc.scopes must include openid"),
        ({"KCOORD_OIDC_GROUP_MAP": "a=b;c"}, "oidc.group.map: 'c' is not provider-group=group"),
        ({"KCOORD_OIDC_CLIENT_SECRET": "a", "KCOORD_OIDC_CLIENT_SECRET_FILE": "b"}, "are both set"),
    ],
)
def test_settings_of_the_identity_provider_are_checked(changed: dict[str, str], problem: str) -> None:
    problems = Config.from_env(PROVIDER | changed).problems
    assert len(problems) == bool(problem), problems
    assert problem in "".join(problems)


def test_passwords_cannot_be_left_to_emergencies_without_a_provider() -> None:
    (problem,) = Config.from_env({"KCOORD_PASSWORD_SIGN_IN": "emergency"}).problems
    assert problem == "oidc.issuer is needed for password.sign.in=emergency"
