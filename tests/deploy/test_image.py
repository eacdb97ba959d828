"""The Dockerfile keeps our rules, and what it copies suffices to run. It is not built here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kcoord.setting_table import BY_NAME, SETTINGS
from tests.deploy.dockerfile import exec_form, last_image, parse, problems
from tests.support.processes import ROOT, free_port, start

TEXT = (ROOT / "Dockerfile").read_text()
FINAL = last_image(parse(TEXT))


def test_the_dockerfile_keeps_the_rules() -> None:
    assert list(problems(TEXT)) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("FROM python:3.12.12-slim-bookworm AS app", "FROM python:3.12-slim AS app", "not pinned"),
        ("COPY kcoord ./kcoord", "COPY . .", "name what the image needs"),
        ("COPY kcoord ./kcoord", "ADD kcoord ./kcoord", "use COPY"),
        ("USER 10001", "USER kcoord", "no number"),
        ("USER 10001", "USER 0", "no number"),
        ("USER 10001", "USER 10001\nRUN apt-get update", "final stage"),
        ("USER 10001", "USER 10001\nRUN pip install --no-cache-dir x", "final stage"),
        ("--no-cache-dir --only-binary :all: --no-binary", "--only-binary :all: --no-binary", "--no-cache-dir"),
        ("WORKDIR /app", "WORKDIR app", "not absolute"),
        ("ENV PATH", "ENV KCOORD_SECRET_KEY=abc PATH", "a secret"),
        ('CMD ["python", "-m", "kcoord.stack"]', "CMD python -m kcoord.stack", "exec form"),
        ("HEALTHCHECK", "LABEL health=", "no HEALTHCHECK"),
    ],
)
def test_each_rule_can_be_broken(before: str, after: str, problem: str) -> None:
    assert before in TEXT
    found = list(problems(TEXT.replace(before, after)))
    assert len(found) == 1, found
    assert problem in found[0]


def test_its_port_and_settings_are_those_of_the_configuration() -> None:
    assert [i.rest for i in FINAL if i.word == "EXPOSE"] == [str(BY_NAME["port"].default)]
    (environment,) = (i.rest for i in FINAL if i.word == "ENV")
    named = {pair.partition("=")[0] for pair in environment.split() if pair.startswith("KCOORD_")}
    assert named
    assert named <= {setting.env for setting in SETTINGS}


def test_its_commands_are_modules() -> None:
    commands = [exec_form(i) for i in FINAL if i.word in ("CMD", "HEALTHCHECK")]
    assert [(c or [])[:2] for c in commands] == [["python", "-m"]] * 2
    assert [(c or [])[2] for c in commands] == ["kcoord.stack.alive", "kcoord.stack"]


def copy_like_the_image(to: Path) -> None:
    """What the final stage copies from here, where it copies it."""
    for i in FINAL:
        if i.word == "COPY" and not i.rest.startswith("--from"):
            *sources, target = i.rest.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, to / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, to / target)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Path]:
    """The image's /app, which nobody may write to there."""
    copy_like_the_image(tmp_path)
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.processes
@pytest.mark.whole("the parts of the image, started from a copy")
def test_what_it_copies_suffices(database: str, app: Path) -> None:
    before = sorted(app.rglob("*"))
    port = free_port()
    env = {"KCOORD_PORT": port, "PYTHONDONTWRITEBYTECODE": 1}
    with start("migrate", ["-m", "kcoord.stack.run", "migrate"], database, env, root=app) as migrate:
        assert migrate.wait(60) == 0, migrate.output
    with start("server", ["-m", "kcoord.stack.run", "server"], database, env, root=app) as server:
        server.port = port
        server.wait_ready()
        for path in ("/sign-in", "/docs", "/v1/openapi.json", "/static/frontend/docs.css"):
            assert httpx.get(f"{server.url}{path}", follow_redirects=True).status_code == 200, path
        assert server.terminate() == 0
    assert sorted(app.rglob("*")) == before
