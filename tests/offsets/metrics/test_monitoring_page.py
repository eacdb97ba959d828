"""Board, alert rules and page of docs/monitoring name only metrics and labels that /metrics has.

PromQL is not parsed: names, matchers and groupings are found by regular expressions, after texts in quotes are gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from groups.topics import TopicService, Watermark
from kcoord.process.runtime import Runtime
from kcoord.setting_table import SETTINGS
from offsets.lag.samples import SampleService
from offsets.metrics import DIALECTS
from offsets.verdicts import VerdictChecks
from tests.docs.pages import ROOT
from tests.support.offsets import commit

PAGES = ROOT / "docs" / "monitoring"
OF_PROMETHEUS = {"up": {"job", "instance"}}
"""Series that Prometheus adds, and labels that it adds to every series."""
ADDED = {"job", "instance"}

KEYWORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset", "group_left", "group_right"}
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_RANGE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"(?<![\w.])[a-zA-Z_:][\w:]*(?!\s*\()(?![\w:])")


def used(expression: str) -> tuple[set[str], dict[str, set[str]], set[str]]:
    """Metrics, the labels that selectors match by metric, and the labels that are grouped by."""
    plain = _TEXT.sub('""', expression)
    matched: dict[str, set[str]] = {}
    for name, matchers in _SELECTOR.findall(plain):
        matched.setdefault(name, set()).update(_MATCHER.findall(matchers))
    grouped = {label.strip() for labels in _GROUPING.findall(plain) for label in labels.split(",") if label.strip()}
    rest = _RANGE.sub("", _SELECTOR.sub(r"\1", _GROUPING.sub(" ", plain)))
    return set(_NAME.findall(rest)) - KEYWORDS, matched, grouped


def problems(expression: str, served: dict[str, set[str]]) -> list[str]:
    """What an expression names that is not there."""
    names, matched, grouped = used(expression)
    found = [f"no metric {name}" for name in sorted(names - set(served))]
    if not names:
        found.append("names no metric")
    for name, labels in matched.items():
        found += [f"{name} has no label {label}" for label in sorted(labels - served.get(name, set()) - ADDED)]
    known = set().union(*(served.get(name, set()) for name in names)) | ADDED
    return found + [f"no label {label} to group by" for label in sorted(grouped - known)]


@pytest.fixture
async def served(api: httpx.AsyncClient, runtime: Runtime, database: str) -> dict[str, set[str]]:
    """Labels by name of all series that /metrics can have in our own names."""
    await runtime.get(TopicService).create("orders", 1)
    await runtime.get(TopicService).set_watermarks("orders", [Watermark(0, 0, 9)])
    await runtime.get(SampleService).sample()
    await commit(runtime, "g", "orders", 0, offset=9)
    await runtime.get(SampleService).sample()
    await runtime.get(VerdictChecks).check_members()
    assert (await api.get("/livez")).status_code == 200  # requests have labels once there was one
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
            " select id, 'stuck', '', 1, 0, '{}' from groups_group"
        )
        connection.execute("select pgmq.create('kcoord')")
        connection.execute("insert into kcoord_counter values ('task_failed:x', 1) on conflict do nothing")
        text = (await api.get("/metrics")).text
        connection.execute("delete from kcoord_counter where name = 'task_failed:x'")
        connection.execute("select pgmq.drop_queue('kcoord')")
    found = dict(OF_PROMETHEUS)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    for collector, names in REGISTRY._collector_to_names.items():
        for name in names:  # a counter with labels has no series until it counts
            if name.endswith("_created") or {name + "_total", name + "_bucket"} & set(names):
                continue  # the library reserves these names and serves none of them
            labels = set(getattr(collector, "_labelnames", ()))
            found.setdefault(name, set()).update(labels | ({"le"} if name.endswith("_bucket") else set()))
    return found


def board() -> Iterator[tuple[str, str]]:
    """Where, and an expression of the board."""
    content: dict[str, Any] = json.loads((PAGES / "grafana.json").read_text())
    for variable in content["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            yield variable["name"], f"max by ({label}) ({metric})"
    for panel in content["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$group", "x")


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    content = yaml.safe_load((PAGES / "alerts.yml").read_text())
    return [rule for group in content["groups"] for rule in group["rules"]]


async def test_the_board_names_what_is_there(served: dict[str, set[str]]) -> None:
    expressions = list(board())
    assert len(expressions) > 30
    wrong = {(title, found) for title, expression in expressions for found in problems(expression, served)}
    assert wrong == set()


async def test_legends_and_texts_name_labels_of_the_result(served: dict[str, set[str]]) -> None:
    content = json.loads((PAGES / "grafana.json").read_text())
    wrong = []
    for panel in content["panels"]:
        for target in panel.get("targets", ()):
            names, _, grouped = used(target["expr"])
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            wrong += [panel["title"]] if legend - (grouped or ADDED.union(*(served[name] for name in names))) else []
    for rule in rules():
        names, _, grouped = used(rule["expr"])
        text = " ".join(rule["annotations"].values())
        kept = grouped or ADDED.union(*(served[name] for name in names))
        wrong += [rule["alert"]] if set(re.findall(r"\$labels\.(\w+)", text)) - kept else []
    assert wrong == []


async def test_the_alerts_name_what_is_there(served: dict[str, set[str]]) -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) > 10
    wrong = {(rule["alert"], problem) for rule in found for problem in problems(rule["expr"], served)}
    assert wrong == set()
    for rule in found:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        settings = set(re.findall(r"KCOORD_[A-Z_]+[A-Z]", " ".join(rule["annotations"].values())))
        assert settings <= {setting.env for setting in SETTINGS}


async def test_the_page_names_what_is_there_and_all_of_it(served: dict[str, set[str]]) -> None:
    text = (PAGES / "README.md").read_text()
    named = set(re.findall(r"`(kcoord_\w+)`", text))
    suffixes = ("_bucket", "_count", "_sum")
    histograms = {name.removesuffix("_bucket") for name in served if name.endswith("_bucket")}
    ours = {name for name in served if name.startswith("kcoord_")}
    ours -= {histogram + suffix for histogram in histograms for suffix in suffixes}
    assert named == ours | {name for name in histograms if name.startswith("kcoord_")}


def test_the_table_of_names_is_that_of_the_code() -> None:
    text = (PAGES / "README.md").read_text()
    table = text[text.index("| members |") : text.index("`kcoord_group_state` also has")]
    rows = [[cell.strip().strip("`") for cell in line.split("|")[2:-1]] for line in table.strip().splitlines()]
    assert list(DIALECTS) == ["kcoord", "kminion", "kafka_exporter", "kafka-lag-exporter"]
    ours = [family.name for family in (*DIALECTS["kcoord"].groups.values(), *DIALECTS["kcoord"].topics.values())]
    for column, dialect in enumerate(DIALECTS.values()):
        names = [family.name for family in (*dialect.groups.values(), *dialect.topics.values())]
        assert [row[column] or row[0] for row in rows] == names
        if column:
            assert [row[column] for row in rows] == [
                name if name != our else "" for name, our in zip(names, ours, strict=True)
            ]


def test_the_settings_and_the_scrape_config_of_the_page() -> None:
    text = (PAGES / "README.md").read_text()
    settings = {setting.env: setting for setting in SETTINGS}
    assert set(re.findall(r"KCOORD_[A-Z_]+[A-Z]", text)) <= set(settings)
    told = re.findall(r"^\| `(KCOORD_METRICS_\w+)` \| `?([^|`]+?)`? \|", text, re.MULTILINE)
    assert {name for name, _ in told} == {name for name in settings if name.startswith("KCOORD_METRICS_")}
    for name, default in told:
        assert default.replace(",", "") == str(settings[name].default).replace("False", "false"), name
    (config,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (job,) = yaml.safe_load(config)["scrape_configs"]
    assert job["authorization"]["type"] == "Bearer"
    assert f'job="{job["job_name"]}"' in (PAGES / "alerts.yml").read_text()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('sum by (topic) (rate(good{group="a by (b)"}[5m])) > 0.5e3', []),
        ("max by (group) (bad) and on (group) good", ["no metric bad"]),
        ('good{nope=~"x"}', ["good has no label nope"]),
        ("sum by (nope) (good)", ["no label nope to group by"]),
        ("rate(bad[1h]) / good", ["no metric bad"]),
        ("topk(5, max without (topic) (good)) or vector(0)", []),
        ("vector(1)", ["names no metric"]),
    ],
)
def test_what_is_found_in_an_expression(expression: str, expected: list[str]) -> None:
    assert problems(expression, {"good": {"group", "topic"}}) == expected
