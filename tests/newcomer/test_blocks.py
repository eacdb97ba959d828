"""Every block of commands of the README and the docs: pasted as it stands, twice in a row, or tested elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from kcoord.stack import credentials
from tests.kcoord.client.scripted import wait_until
from tests.newcomer.blocks import PAGES, Block, blocks
from tests.newcomer.house import House, moved_in
from tests.support.processes import ROOT

DEPLOYMENT, PLANS = "docs/deployment.md", "docs/plans.md"
START_PAGE, ACCESS, HEALTH, BACKUP = (f"docs/operations/{name}.md" for name in ("start", "access", "health", "backup"))
PERFORMANCE = "docs/performance.md"
MONITORING, RESTORE = "docs/monitoring/README.md", "docs/restore.md"

RESTORED = '"$PG/psql" "$ADMIN dbname=postgres"'
ACLS = "tests/kcoord/access/test_acl_command.py"
START = "tests/kcoord/stack/test_stack.py"
RUN = {
    (START_PAGE, ".venv/bin/python manage.py create_token "),
    (MONITORING, ".venv/bin/python manage.py create_token "),
    (START_PAGE, ".venv/bin/python manage.py settings_reference "),
    (BACKUP, "PG=$(.venv/bin/python "),
    (BACKUP, RESTORED),
    (PLANS, "T=$("),
    (PLANS, "PLAN="),
    (PLANS, "call -X POST $G/hold "),
    (PLANS, "AT="),
    (PLANS, ".venv/bin/python manage.py import_offsets "),
    (RESTORE, ".venv/bin/python manage.py restore "),
    (START_PAGE, "make up"),
}
"""Run by this module. A block is named by its page and how it begins."""

ELSEWHERE = {
    ("README.md", "make up "): "tests/kcoord/demo/test_demo.py",
    ("docs/alerts.md", "T=$("): "tests/offsets/alerts/test_stored.py",
    ("docs/alerts.md", "call $A/rules "): "tests/offsets/alerts/test_rest.py",
    (PLANS, "call -X POST $G/offsets/plans/$PLAN/approve "): "tests/kcoord/kgroups/test_reset.py",
    ("docs/archive.md", ".venv/bin/python manage.py archive"): "tests/offsets/spark/test_command.py",
    ("docs/archive.md", "export KCOORD_ARCHIVE_PATH="): "tests/offsets/spark/test_command.py",
    ("docs/client.md", "pip install . "): "tests/kcoord/package/test_package.py",
    ("docs/first-worker.md", ""): "tests/processes/test_first_worker.py",
    ("docs/queue.md", ""): "tests/processes/test_queue_page.py",
    ("docs/high-availability.md", "KCOORD_DATABASE_URL="): "tests/failover/test_runs.py",
    ("docs/http-walkthrough.md", ""): "tests/processes/test_walkthrough.py",
    ("docs/kafka-clients.md", "KCOORD_TOKEN="): "tests/wire/test_connect_style.py",
    ("docs/kgroups.md", ".venv/bin/python manage.py kgroups "): "tests/kcoord/kgroups/test_docs.py",
    (START_PAGE, "KCOORD_DATABASE_URL=postgresql:"): START,
    (HEALTH, ".venv/bin/pip install -r deploy/"): "tests/deploy/test_tracing.py",
    (START_PAGE, "KCOORD_BROKER_URL=redis:"): "tests/kcoord/stack/test_fresh_install.py",
    (ACCESS, ".venv/bin/python manage.py quotas "): "tests/kcoord/quotas/test_stored.py",
    (ACCESS, ".venv/bin/python manage.py acl --add --allow-principal "): ACLS,
    (ACCESS, ".venv/bin/python manage.py acl --add --deny-principal "): ACLS,
    (ACCESS, ".venv/bin/python manage.py acl --list "): ACLS,
    (ACCESS, ".venv/bin/python manage.py acl --remove "): ACLS,
    (ACCESS, ".venv/bin/python manage.py audit "): "tests/kcoord/audit/test_chain.py",
    ("docs/reconcile.md", ""): "tests/offsets/spark/test_command.py",
    ("docs/restore.md", "export KCOORD_ARCHIVE_PATH="): "tests/offsets/runs/test_restore_command.py",
    ("docs/sinks.md", ""): "tests/processes/test_exactly_once.py",
}
"""Run, or checked, by another file of tests."""

NOT_RUN = {
    ("CONTRIBUTING.md", "make venv "): "these are the tests",
    ("docs/archive.md", "for jar in "): "downloads packages of Java",
    (START_PAGE, ".venv/bin/python manage.py createsuperuser"): "asks questions",
    (START_PAGE, 'psql "$(sed '): "needs psql on the path, and waits for statements",
    (DEPLOYMENT, "python manage.py createsuperuser"): "asks questions",
    ("docs/archive.md", "PYTHONPATH=/path/to/kcoord spark-submit "): "needs a Spark cluster",
    (PERFORMANCE, "make bench"): "takes half an hour",
    (DEPLOYMENT, "export POSTGRES_PASSWORD=…"): "needs Docker",
    (DEPLOYMENT, "git clone "): "needs systemd, and root",
    (DEPLOYMENT, "kubectl "): "needs a Kubernetes cluster",
    ("docs/restore.md", "kafka-console-consumer.sh "): "needs a Kafka broker",
}
"""Not run, and why."""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("stack"),
    pytest.mark.whole("every block of the docs in a house of its own, twice"),
    pytest.mark.skipif(
        shutil.which("make") is None or shutil.which("curl") is None, reason="needs make and curl on the path"
    ),
]


def begins(block: Block, entry: tuple[str, str]) -> bool:
    return block.page == entry[0] and block.text.startswith(entry[1])


def script(*entries: tuple[str, str]) -> str:
    """The blocks that begin so, one after the other."""
    chosen = [[block for block in blocks(entry[0]) if begins(block, entry)] for entry in entries]
    assert [len(found) for found in chosen] == [1] * len(entries)
    return "".join(found[0].text for found in chosen)


def test_every_block_is_accounted_for() -> None:
    entries = [*RUN, *ELSEWHERE, *NOT_RUN]
    found = [block for page in PAGES for block in blocks(page)]
    told = {(block.page, block.line): [entry for entry in entries if begins(block, entry)] for block in found}
    assert {where: names for where, names in told.items() if len(names) != 1} == {}, "run it, or say where it is tested"
    assert [entry for entry in entries if not any(begins(block, entry) for block in found)] == [], "no such block"
    assert [path for path in ELSEWHERE.values() if not (ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """`make up`, and a group `billing` that has committed 8,000 of 9,000 records of a topic `orders`."""
    with moved_in() as house:
        with client(house) as api:
            watermarks = [{"partition": n, "log_start_offset": 0, "log_end_offset": 9_000} for n in range(2)]
            commit = [{"partition": n, "committed_offset": 8_000} for n in range(2)]
            for path, body in (
                ("topics", {"name": "orders", "partitions": 2}),
                ("topics/orders/watermarks", {"partitions": watermarks}),
                ("groups/billing/offsets/commit", {"topics": [{"name": "orders", "partitions": commit}]}),
            ):
                api.post(path, json=body).raise_for_status()
        yield house


def client(house: House) -> httpx.Client:
    token = credentials.read(house.directory / ".kcoord").api_token
    return httpx.Client(base_url=f"{house.running.url}/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=30)


def offsets(house: House) -> list[int]:
    with client(house) as api:
        found = api.get("groups/billing/offsets").raise_for_status().json()["offsets"]
        return [partition["committed_offset"] for partition in found]


def try_offsets(house: House) -> list[int] | None:
    """None while the service cannot answer."""
    try:
        return offsets(house)
    except httpx.HTTPError:
        return None


def paste(house: House, commands: str) -> str:
    """The output of commands that end well and are not refused."""
    done = house.paste(commands)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"error":' not in re.sub(r'"error": ?(null|"NONE")', "", done.stdout), done.stdout
    return done.stdout


def test_the_newcomer_is_an_ordinary_user(house: House) -> None:
    if house.user is None and os.geteuid() == 0:
        pytest.skip("root runs the tests, and no other user may run a Python of their version")
    assert house.paste("id -u").stdout.strip() == str(house.user or os.geteuid()) != "0"


@pytest.mark.parametrize(("page", "name"), [(START_PAGE, "billing"), (MONITORING, "prometheus")])
def test_tokens_are_made_once(house: House, page: str, name: str) -> None:
    commands = script((page, ".venv/bin/python manage.py create_token "))
    secret = paste(house, commands).split()[-1]
    answer = httpx.get(f"{house.running.url}/v1/groups", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200, answer.text
    again = house.paste(commands)
    assert again.returncode == 1
    assert f"a token named '{name}' already exists; choose another name or delete it first" in again.stderr


def test_settings(house: House) -> None:
    assert "KCOORD_REQUEST_MAX_AGE_MS" in paste(house, script((START_PAGE, ".venv/bin/python manage.py settings_ref")))


@pytest.mark.parametrize("turn", ["first", "again"])
def test_plans(house: House, turn: str) -> None:
    """The id of the plan is what a reader replaces."""
    before = offsets(house)
    begin = script((PLANS, "T=$("))
    made = json.loads(paste(house, begin))
    assert (made["state"], made["totals"]["changed"]) == ("planned", 2)
    applied = re.sub(r"(?m)^PLAN=\S+", f"PLAN={made['id']}", script((PLANS, "PLAN=")))
    told = [json.loads(line) for line in paste(house, setup(begin) + applied).splitlines()]
    assert [plan["state"] for plan in told[:2]] == ["applied", "undone"]
    assert made["id"] in [plan["id"] for plan in told[2]["plans"]]
    assert offsets(house) == before

    hold, _, rest = script((PLANS, "call -X POST $G/hold ")).partition("PLAN=")
    told = [json.loads(line) for line in paste(house, setup(begin) + hold).splitlines()]
    rest = re.sub(r"^\S+", told[1]["id"], rest)
    paste(house, setup(begin) + "PLAN=" + rest)
    assert offsets(house) == [offset - 1_000 for offset in before]
    back = json.loads(paste(house, setup(begin) + script((PLANS, "AT="))))
    assert back["state"] == "planned"


def setup(commands: str) -> str:
    """What a reader still has in the shell: its variables and functions."""
    return "".join(line for line in commands.splitlines(keepends=True) if re.match(r"\w+(=|\(\))", line))


@pytest.mark.parametrize("turn", ["first", "again"])
def test_an_import(house: House, turn: str) -> None:
    (house.directory / "offsets.csv").write_text("nightly,orders,0,500\nnightly,orders,1,600\n")
    (house.directory / "one-group.csv").write_text("orders,0,700\n")
    start = offsets(house)
    paste(house, script((PLANS, ".venv/bin/python manage.py import_offsets ")))
    assert offsets(house) == [700, *start[1:]]
    with client(house) as api:
        assert '"committed_offset":600' in api.get("groups/nightly/offsets").text


def test_going_back_in_time(house: House) -> None:
    """The instant, and the run that is undone, are what a reader replaces."""
    before = offsets(house)
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with client(house) as api:
        body = {"topics": [{"name": "orders", "partitions": [{"partition": 1, "committed_offset": 2}]}]}
        api.post("groups/billing/offsets/commit", json=body).raise_for_status()
    later = offsets(house)
    commands = script((RESTORE, ".venv/bin/python manage.py restore ")).replace("2026-11-20T12:00:00Z", at)
    restore, _, undo = commands.partition(".venv/bin/python manage.py restore --undo ")
    done = house.paste(restore)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = re.findall(r"undo it with: restore --undo (\S+)", done.stderr)
    assert offsets(house) == before != later
    paste(house, f".venv/bin/python manage.py restore --undo {runs[0]}")
    assert undo == "RUN\n"
    assert offsets(house) == later
    with client(house) as api:
        body = {"topics": [{"name": "orders", "partitions": [{"partition": 1, "committed_offset": before[1]}]}]}
        api.post("groups/billing/offsets/commit", json=body).raise_for_status()


@pytest.mark.parametrize("turn", ["first", "again"])
def test_backup_and_restore(house: House, turn: str) -> None:
    before = offsets(house)
    begin = script((BACKUP, "PG=$(.venv/bin/python "))
    paste(house, begin)
    with client(house) as api:
        body = {"topics": [{"name": "orders", "partitions": [{"partition": 1, "committed_offset": 1}]}]}
        wait_until(lambda: api.post("groups/billing/offsets/commit", json=body).status_code == 200, 0.1)
    assert offsets(house) != before
    paste(house, setup(begin) + script((BACKUP, RESTORED)))
    # Its connections were ended; the page says to restart. Members would be answered 503, retry, and do that.
    wait_until(lambda: try_offsets(house) == before, 0.1)


def test_the_programs_of_the_readme_are_not_of_the_group_of_the_queue() -> None:
    group = re.search(r"^GROUP = (.+)$", (ROOT / "docs/examples/queue_worker.py").read_text(), re.MULTILINE)
    assert group, "a consumer cannot join a share group, and librdkafka retries without saying so"
    assert all(group[1] not in (ROOT / page).read_text() for page in ("README.md", "docs/sources.md"))
