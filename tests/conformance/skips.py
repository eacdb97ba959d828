"""What is not run, and why: the whole of it is this table.

There are three kinds of reasons: the case describes Kafka before the baseline, a step needs an older version of the
call than is served that way, or it is about the replicated log, which Postgres replaces. A case that no driver can run
fails instead. One that is skipped at a step, or in a part of its expectations, is still checked as far as it goes: it
counts as skipped instead of passed, and as failed when anything that can be compared is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.cases import Case, Step, Suite
from tests.conformance.conventions import NEWEST_VERSIONS

BASELINE = (4, 4)
"""The release whose behaviour this project has (consumer.md 0.1)."""


OLDEST_OVER_THE_WIRE: Mapping[str, int] = {
    "JoinGroup": 0,
    "SyncGroup": 0,
    "Heartbeat": 0,
    "LeaveGroup": 0,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "ConsumerGroupHeartbeat": 0,
}
"""The oldest versions that clients of Kafka's protocol can use; a test compares them with what is served."""

RETENTION_TIME = 4
"""The newest version of OffsetCommit that has a retention time."""

LINGER = "group.coordinator.append.linger.ms"
"""How long a broker collects appends to its log."""


@dataclass(frozen=True, slots=True)
class Skip:
    """One row: what it applies to (exactly one of `case`, `step`, `part`) and the reason.

    `case`: the whole case is left out. `step(case, step, through)`: the case ends before such a step. `part`: a key of
    an expectation that is not compared; the rest of the case is.
    """

    reason: str
    case: Callable[[Case], bool] | None = None
    step: Callable[[Case, Step, str], bool] | None = None
    part: str | None = None


def _older_version(case: Case, step: Step, through: str) -> bool:
    if step.kind != "call" or step.subject not in NEWEST_VERSIONS:
        return False
    if case.suite is Suite.CONSUMER and step.subject == "JoinGroup" and step.args.get("instance_id"):
        return False  # a static member that joins for the first time is answered alike by all versions
    if case.suite is Suite.OFFSETS and step.subject == "OffsetCommit" and _the_same_in_all_versions(case, step):
        return False
    oldest = OLDEST_OVER_THE_WIRE if through == "wire" else NEWEST_VERSIONS
    asked: int = step.args.get("api_version", NEWEST_VERSIONS[step.subject])
    return asked < oldest[step.subject]


def _has_a_dropped_field(case: Case, step: Step, through: str) -> bool:
    if through != "wire" or step.subject != "OffsetCommit" or step.args.get("retention_time_ms", -1) == -1:
        return False
    asked = step.args.get("api_version", NEWEST_VERSIONS["OffsetCommit"])
    entries = [entry for entry in _leaves(step.args["offsets"]) if isinstance(entry, Mapping)]
    has_epochs = any(entry.get("leader_epoch", -1) != -1 for entry in entries)
    return asked > RETENTION_TIME and (has_epochs or not _the_same_in_all_versions(case, step))


def _tells_the_partition(case: Case, step: Step, through: str) -> bool:
    return through == "wire" and step.subject == "FindCoordinator" and '"partition"' in json.dumps(step.expect)


def _the_same_in_all_versions(case: Case, step: Step) -> bool:
    """Versions of OffsetCommit differ in what they answer to members of a group that is unknown or of the consumer
    protocol, and in a time of commit that only the oldest carries.
    """
    earlier = case.steps[: step.number - 1]
    elapsed = sum(other.subject for other in earlier if other.kind == "advance_ms")
    entries = [entry for entry in _leaves(step.args.get("offsets", {})) if isinstance(entry, Mapping)]
    if any(entry.get("commit_timestamp", elapsed) != elapsed for entry in entries):
        return False
    given = {other.args["group_id"]: other.subject for other in earlier if str(other.subject).startswith("Given")}
    group, is_member = given.get(step.args["group_id"]), bool(step.args.get("member_id"))
    if group == "GivenConsumerGroup" and is_member:
        return False
    return step.args.get("generation_id_or_member_epoch", -1) < 0 or group == "GivenClassicGroup"


def _leaves(by_topic: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    return [leaf for partitions in by_topic.values() for leaf in partitions.values()]


def _finds_no_group(case: Case, step: Step, through: str) -> bool:
    return through == "http" and step.subject == "FindCoordinator" and step.args.get("key_type", 0) != 0


def _has_no_group_id(case: Case, step: Step, through: str) -> bool:
    names = (name for key in ("groups", "groups_names", "group_ids") for name in step.args.get(key, ()))
    entries = [step.args, *names]
    return any((entry.get("group_id", "") if isinstance(entry, Mapping) else entry) is None for entry in entries)


def _calls(*names: str) -> Callable[[Case, Step, str], bool]:
    return lambda case, step, through: step.kind == "call" and step.subject in names


def _older_than_baseline(case: Case) -> bool:
    return case.until is not None and tuple(int(part) for part in case.until.split(".")) < BASELINE


SKIPS: tuple[Skip, ...] = (
    Skip("`until` is older than the baseline 4.4", case=_older_than_baseline),
    Skip("needs an older version of the call than is served", step=_older_version),
    Skip("versions of OffsetCommit that have a retention time differ in the rest", step=_has_a_dropped_field),
    Skip("FindCoordinator of Kafka's protocol does not tell the partition", step=_tells_the_partition),
    Skip("neither a path nor a request of Kafka's protocol can leave out the group id", step=_has_no_group_id),
    Skip("over HTTP only groups have coordinators", step=_finds_no_group),
    Skip("append.linger.ms: Postgres replaces the replicated log", case=lambda case: LINGER in case.config),
    Skip("HoldCommits: Postgres replaces the replicated log", step=_calls("HoldCommits")),
    Skip("FailNextAppend: Postgres replaces the replicated log", step=_calls("FailNextAppend")),
    Skip("expect.records: Postgres replaces the replicated log", part="records"),
)


def whole_case(case: Case) -> str | None:
    """Why `case` is not run at all, or None."""
    return next((skip.reason for skip in SKIPS if skip.case and skip.case(case)), None)


def at_step(case: Case, step: Step, through: str) -> str | None:
    """Why `case` ends before `step` when it runs `through` a backend of this name, or None."""
    return next((skip.reason for skip in SKIPS if skip.step and skip.step(case, step, through)), None)


def without_parts(step: Step) -> tuple[Step, str | None]:
    """`step` without the parts of its expectation that are not compared, and why (None: nothing is left out)."""
    for skip in SKIPS:
        if skip.part and step.expect and skip.part in step.expect:
            rest = {key: value for key, value in step.expect.items() if key != skip.part}
            return replace(step, expect=rest), skip.reason
    return step, None
