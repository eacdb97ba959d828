"""What pages say of a fact is said once: outcomes, findings, instants, and the words of rights."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from frontend.pages.access.tokens import GRANTED, PRESETS, rules_of
from frontend.pages.access.words import allows
from frontend.pages.archive.view import run_line
from frontend.pages.overview import parts as health
from frontend.pages.overview.parts import Archive, Celery, Needy, Part, Sampler
from frontend.ui.states import found_state, run_state
from kcoord.access.rights import Operation, Resource
from kcoord.access.tokens import parse_rule
from kcoord.database.task_health import TaskHealth
from offsets.verdicts import Attention
from tests.frontend.seed import Seed
from tests.support.spark_runs import put_run

NOW = 1_760_000_000_000
LIMITS = health.Limits(timers_ms=10_000, sample_ms=30_000, check_ms=5_000)


def words(*written: str) -> str:
    return "; ".join(allows(map(parse_rule, written)))


def test_a_consumer_is_not_said_to_reset_offsets() -> None:
    assert "reset" not in words("read:group:billing", "read:topic:orders")
    assert "commit and fetch" in words("read:group:billing", "read:topic:orders")
    assert "reset" in words("alter-offsets:group:billing", "read:topic:orders").partition("topic orders")[0]


def test_who_may_read_no_topic_is_not_said_to_reset_offsets_on_any() -> None:
    assert "on no topic" in words("alter-offsets:group:billing")
    assert "on no topic" not in words("alter-offsets:group:billing", "read:topic:*")
    assert "on no topic" in words("alter-offsets:group:billing", "read:topic:a", "deny:read:topic:a")


@pytest.mark.parametrize("preset", GRANTED)
def test_the_words_of_a_preset_are_those_of_its_rules(preset: str) -> None:
    (shown,) = (one for one in PRESETS if one.key == preset)
    rules = rules_of({"preset": preset, "groups": "billing", "topics": "orders"})
    for phrase in allows(rules):
        assert phrase.replace("group billing", "the groups").replace("topic orders", "the topics") in shown.help
    resets = any(one.operation == "alter-offsets" for one in rules)
    assert ("reset" in shown.help) is resets


def run(seed: Seed, findings: int | None, state: str = "succeeded") -> str:
    return put_run(seed.connection, "reconcile", state, findings=findings)


def test_a_run_with_findings_is_no_green_success(person: Client, seed: Seed) -> None:
    run_id = run(seed, 2_212)
    for path in ("/archive", f"/archive/runs/{run_id}"):
        page = person.get(path).content.decode()
        assert "2,212 findings" in page, path
        assert 'data-tone="good"' not in page, path
        assert 'data-tone="warn"' in page, path


def test_outcome_and_findings_are_apart() -> None:
    class Run:
        state, findings, started_at, slices_total, is_open, kind = "succeeded", 0, None, None, False, "reconcile"

    without: Any = Run()
    assert (run_state(without).tone, found_state(without)) == ("good", None)
    without.findings = 3
    found = found_state(without)
    assert run_state(without).name == "succeeded"
    assert run_state(without).tone != "good"
    assert found is not None
    assert found.tone == "warn"
    assert run_line(without, NOW, "/").found == found
    without.ended_at = NOW
    (line,) = health.part_lines("archive", Part(Archive("/archive", [without]), NOW), NOW, LIMITS, "")
    assert line.state == found
    without.state = "failed"
    assert run_state(without).tone == "bad"


def test_one_page_has_one_instant_of_judgement() -> None:
    old, new = {"members": NOW - 3_000, "offsets": NOW - 58_000}, {"members": NOW - 1_000, "offsets": NOW - 56_000}
    needy = Needy(Attention((), 0, {}, old), {}, {})
    parts = {"attention": Part(needy, NOW), "sampler": Part(Sampler(NOW, new), NOW)}
    lines = health.health(health.with_judged_at(parts), NOW, LIMITS, {})
    (judged,) = (line for line in lines if line.name == "Verdicts")
    assert judged.at == health.judged_at(old) == NOW - 58_000


def test_tasks_of_celery_are_not_called_runs() -> None:
    lines = health.part_lines("celery", Part(Celery(NOW, True, TaskHealth({}, 0)), NOW), NOW, LIMITS, "")
    assert [line for line in lines if "run has failed" in line.text] == []


def test_rights_in_words_agree_with_the_rules() -> None:
    for written in (["read:group:a", "read:topic:b"], ["admin:group:a", "read:topic:b"], ["kick:group:a"]):
        rules = [parse_rule(one) for one in written]
        from frontend.pages.access.words import effective

        may_reset = effective(rules).allows(Operation.ALTER_OFFSETS, Resource.GROUP, "a") and effective(rules).allows(
            Operation.READ, Resource.TOPIC, "b"
        )
        assert ("reset" in "; ".join(allows(rules))) is may_reset
