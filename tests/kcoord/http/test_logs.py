"""Log lines: one JSON object each, from us and from libraries."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from kcoord.door.http import logs
from kcoord.requests import current

Written = pytest.CaptureFixture[str]


@pytest.fixture
def written(capsys: Written) -> Iterator[Written]:
    """What goes to standard error after `configure`."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure("info")
    yield capsys
    logs.configure("info")
    root.handlers, root.level = handlers, level


def lines(written: Written) -> list[dict[str, Any]]:
    """The lines as JSON."""
    return [json.loads(line) for line in written.readouterr().err.splitlines()]


def test_our_lines(written: Written) -> None:
    structlog.get_logger("x").info("happened", group_id="日本\n{}", at_ms=1)
    (line,) = lines(written)
    assert line.pop("at").endswith("Z")
    assert line == {"event": "happened", "group_id": "日本\n{}", "at_ms": 1, "level": "info"}


def test_lines_of_libraries(written: Written) -> None:
    logging.getLogger("some.library").warning("it %s", "happened")
    (line,) = lines(written)
    assert (line["event"], line["level"], line["logger"]) == ("it happened", "warning", "some.library")


def test_lines_of_a_request_carry_its_id(written: Written) -> None:
    token = current.enter_request(current.RequestContext("r-1"))
    structlog.get_logger().info("ours")
    logging.getLogger("some.library").error("theirs")
    current.leave_request(token)
    structlog.get_logger().info("later")
    assert [line.get("request_id") for line in lines(written)] == ["r-1", "r-1", None]


def test_failures_keep_their_traceback_on_one_line(written: Written) -> None:
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        structlog.get_logger().exception("failed", value=object())
    (line,) = lines(written)
    assert "ZeroDivisionError: why" in line["exception"]
    assert line["level"] == "error"


def test_the_level_is_a_threshold(written: Written) -> None:
    logs.configure("warning")
    structlog.get_logger().info("ours")
    logging.getLogger("some.library").info("theirs")
    structlog.get_logger().warning("this")
    assert [line["event"] for line in lines(written)] == ["this"]


def test_the_level_is_one_of_the_setting() -> None:
    from kcoord.setting_table import BY_NAME

    assert set(logs.LEVELS) == set(BY_NAME["log.level"].choices)
    with pytest.raises(KeyError):
        logs.configure("loud")


def test_what_people_read_shows_no_values_of_variables(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    logs.configure("info")

    def authenticate(secret: str) -> None:
        try:
            raise ZeroDivisionError("why")
        except ZeroDivisionError:
            structlog.get_logger().exception("failed")

    authenticate("kc_of_somebody")
    text = written.readouterr().err
    assert "ZeroDivisionError: why" in text
    assert "kc_of_somebody" not in text
