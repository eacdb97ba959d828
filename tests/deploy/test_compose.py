"""compose.yaml starts what exists, with settings that exist, and keeps no secret. Docker is not needed here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kcoord.config import Config
from kcoord.setting_table import BY_NAME
from kcoord.stack.run import ROLES
from kcoord.stack.server import GRACE_SECONDS
from tests.support.processes import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name in SERVICES if name != "postgres"]
CHOSEN = {"POSTGRES_PASSWORD": "pass", "KCOORD_SECRET_KEY": "k" * 64}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def substituted(text: str) -> str:
    """What compose makes of `${NAME}`, `${NAME:-default}` and `${NAME:?problem}` with the two secrets chosen."""
    return VARIABLE.sub(lambda m: CHOSEN.get(m[1]) or (m[3] if m[2] == "-" else ""), text)


def secrets(services: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Variables that hold a secret as it is, instead of the name of a variable outside."""
    for name, service in services.items():
        for key, value in service.get("environment", {}).items():
            password = re.search(r"://[^:/]+:([^@]*)@", value)
            if "URL" in key and password and not password[1].startswith("${"):
                yield f"{name}: {key}"
            if re.search("PASSWORD|SECRET|TOKEN", key) and not VARIABLE.fullmatch(value):
                yield f"{name}: {key}"


def test_every_role_is_a_service_with_its_command() -> None:
    assert {name: SERVICES[name]["command"] for name in OURS} == {
        role: ["python", "-m", "kcoord.stack.run", role] for role in ROLES
    }


@pytest.mark.parametrize("name", OURS)
def test_its_environment_is_one_that_the_service_accepts(name: str) -> None:
    environment = {key: substituted(value) for key, value in SERVICES[name]["environment"].items()}
    config = Config.from_env(environment)
    assert config.problems == ()
    assert config.str("database.url") == "postgresql://kcoord:pass@postgres:5432/kcoord"
    assert bool(config.str("secret.key")) == (name in ("server", "worker")), "for cookies and receivers of alerts"


def test_the_database_of_the_address_is_the_one_that_postgres_makes() -> None:
    postgres = SERVICES["postgres"]["environment"]
    assert (postgres["POSTGRES_USER"], postgres["POSTGRES_DB"]) == ("kcoord", "kcoord")


def test_the_file_has_no_secret() -> None:
    assert list(secrets(SERVICES)) == []
    told = "\n".join(value for service in SERVICES.values() for value in service.get("environment", {}).values())
    demanded = {name for name, kind, _ in VARIABLE.findall(told) if kind == "?"}
    assert demanded == set(CHOSEN), "without them compose must refuse to start"


def test_a_secret_in_the_file_is_noticed() -> None:
    services = {
        "a": {"environment": {"KCOORD_DATABASE_URL": "postgresql://u:pw@h/d"}},
        "b": {"environment": {"KCOORD_SECRET_KEY": "abc"}},
        "c": {"environment": {"POSTGRES_PASSWORD": "${POSTGRES_PASSWORD:-postgres}x"}},
    }
    assert list(secrets(services)) == [
        "a: KCOORD_DATABASE_URL",
        "b: KCOORD_SECRET_KEY",
        "c: POSTGRES_PASSWORD",
    ]


def test_only_the_server_is_published_and_only_on_loopback() -> None:
    port = BY_NAME["port"].default
    assert {name: s["ports"] for name, s in SERVICES.items() if "ports" in s} == {
        "server": [f"127.0.0.1:{port}:{port}"]
    }


def test_what_waits_for_what() -> None:
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "healthcheck" in SERVICES["postgres"]
    for name in set(OURS) - {"migrate"}:
        assert SERVICES[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_only_the_server_has_the_health_check_of_the_image() -> None:
    disabled = {name for name in OURS if SERVICES[name].get("healthcheck") == {"disable": True}}
    assert disabled == set(OURS) - {"server"}, "the others answer no HTTP and would count as unhealthy"


def test_nothing_is_killed_before_it_could_stop() -> None:
    for name in set(OURS) - {"migrate"}:
        grace = SERVICES[name]["stop_grace_period"]
        seconds = int(grace[:-1]) * (60 if grace.endswith("m") else 1)
        assert seconds > GRACE_SECONDS + 5, name


def test_volumes_are_declared() -> None:
    named = {
        v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", []) if not v.startswith((".", "/"))
    }
    assert named == set(COMPOSE["volumes"])
