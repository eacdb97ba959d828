"""One guard keeps text from outside from becoming a formula, in every CSV file of the server and of pages."""

from __future__ import annotations

import csv
import io
import re
import uuid
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from frontend.ui import table as csv_files
from frontend.urls import urlpatterns
from tests.frontend.alert_seed import put_alert, put_rule
from tests.frontend.node_seed import four_nodes
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms, working_group
from tests.support.spark_runs import put_finding, put_run

SCRIPT = Path(csv_files.__file__).parents[1] / "static" / "frontend" / "table-csv.js"
FILES = [page.name for page in urlpatterns if page.name and page.name.endswith("-csv")]
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?|True|False")
SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫"


@pytest.mark.parametrize("before", ["", " ", "\n", "\t", "\r", "\r\n", "\u00a0", "\ufeff", "\u200b", "\x00", "\u3000"])
@pytest.mark.parametrize("sign", SIGNS)
def test_every_sign_of_a_formula_is_guarded(before: str, sign: str) -> None:
    assert csv_files.cell(f"{before}{sign}cmd(1)") == f"'{before}{sign}cmd(1)"


@pytest.mark.parametrize("text", ["\nx", "\tx", "\rx"])
def test_leading_line_ends_and_tabs_are_guarded(text: str) -> None:
    assert csv_files.cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["orders", "", "a=b", "10.0.0.7", " orders", "－".join("ab"), -5, None])
def test_other_values_stay(value: object) -> None:
    assert csv_files.cell(value) == value


def test_pages_have_the_guard_of_the_server() -> None:
    found = re.search(r"FORMULA = /\^\(\?:(.*)\)/;", SCRIPT.read_text())
    assert found is not None
    assert found[1] == csv_files.FORMULA.pattern


@pytest.fixture
def names(operator: Client, seed: Seed) -> dict[str, object]:
    """Something for every file."""
    seed.topic("orders", 12, [12_000] * 12)
    members = working_group(seed)
    seed.group("idle", "Empty")
    seed.journal("billing", "reset", "orders", 0, 3, principal="＝mara")
    seed.event("billing", "group_held", 1, principal="@mara", reason="＋1", until=now_ms())
    four_nodes(seed)
    rule_id = put_rule(seed.connection, "@rule")
    put_alert(seed.connection, rule_id, "billing", at=now_ms())
    run_id = put_run(seed.connection, "reconcile", findings=1)
    put_finding(seed.connection, run_id, 1, group="=cmd")
    plan_id = put_plan(seed.connection, "billing", made_at=now_ms(), reason="＝1")
    return {"group_id": "billing", "name": "orders", "plan_id": plan_id, "run_id": uuid.UUID(run_id),
            "member_id": members[0]}  # fmt: skip


def test_all_text_of_every_file_passes_the_guard(
    operator: Client, names: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "cell", lambda value: f"«{value}»" if isinstance(value, str) else value)
    unguarded, with_text = [], set()
    for page in urlpatterns:
        if page.name not in FILES:
            continue
        given = {one: names[one] for one in page.pattern.converters}
        answer = operator.get(reverse(f"frontend:{page.name}", kwargs=given), {"member": names["member_id"]})
        if answer.status_code == 404 and "report" in page.name:
            continue  # a run of Spark would have to write one
        assert answer.status_code == 200, page.name
        content = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
        _, *rows = csv.reader(io.StringIO(content, newline=""))
        cells = [(page.name, text) for row in rows for text in row if text and not NUMBER.fullmatch(text)]
        unguarded += [one for one in cells if not one[1].startswith("«")]
        with_text |= {name for name, _ in cells}
    assert unguarded == []
    assert len(with_text) > 20, with_text


def test_a_file_has_attributes_of_rows_and_what_is_given() -> None:
    row = {"a": 1, "of": None, "at": 0, "several": ["x", "y"]}
    written = csv_files.csv_of("x", "a b=of.c @at several", [row], a=lambda one: one["a"] + 1, z="all", y=None)
    body = b"".join(written.streaming_content).decode()  # type: ignore[attr-defined]
    assert body.splitlines() == ["a,b,at,several,z,y", "2,,1970-01-01T00:00:00.000Z,x y,all,"]
