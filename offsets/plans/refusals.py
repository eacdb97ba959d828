"""Why a plan cannot be made, applied or undone, as errors.

Source: http-api.md 4; offsets.md 13.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from kcoord.protocol.errors import Error, PartitionProblem, ProblemFields, ProtocolError
from offsets.core.plan_types import PlanState, Problem
from offsets.core.types import TopicPartition
from offsets.plans.summary import PlanHeader

MOST_NAMED = 10
"""The most partitions that the message of a refusal names."""
MOST_LISTED = 100
"""The most partitions that a refusal lists as data."""


class PlanRefused(ProtocolError):
    """INVALID_REQUEST with a different status: 404 for a plan that does not exist, 409 if something changed."""

    def __init__(self, status: int, detail: str, **fields: Unpack[ProblemFields]) -> None:
        super().__init__(Error.INVALID_REQUEST, detail, fields=fields)
        self.status = status


def unknown_plan(group_id: str, plan_id: str) -> ProtocolError:
    """The error for a plan that does not exist, or that belongs to another group."""
    return PlanRefused(
        404,
        f"group {group_id!r} has no plan {plan_id[:50]!r}; GET /v1/groups/{{group_id}}/offsets/plans lists them",
    )


def cannot_be_planned(problems: Sequence[Problem]) -> ProtocolError:
    """One refusal for all partitions that prevent a plan; one that does not exist determines its error."""
    told = "; ".join(f"{p.topic}-{p.partition}: {p.text}" for p in problems[:MOST_NAMED])
    more = f"; and {len(problems) - MOST_NAMED} more partitions" if len(problems) > MOST_NAMED else ""
    missing = any(problem.error is Error.UNKNOWN_TOPIC_OR_PARTITION for problem in problems)
    as_data: list[PartitionProblem] = [
        {"topic": p.topic, "partition": p.partition, "problem": p.text} for p in problems[:MOST_LISTED]
    ]
    return ProtocolError(
        Error.UNKNOWN_TOPIC_OR_PARTITION if missing else Error.INVALID_REQUEST,
        f"no plan was made: {told}{more}",
        fields={"problems": as_data, "problem_count": len(problems)},
    )


def wrong_state(verb: str, state: PlanState) -> ProtocolError:
    """The refusal of a step that needs another state. `verb`: what was asked for, as a participle."""
    told = {
        PlanState.PLANNED: "it has not been applied",
        PlanState.APPLIED: "it has already been applied",
        PlanState.UNDONE: "it was undone; make a new plan",
    }
    return PlanRefused(409, f"the plan cannot be {verb}: {told[state]}", state=state.value)


def waits_for_approval(plan: PlanHeader) -> ProtocolError:
    """The refusal to apply a plan that nobody has approved, where plans take a second person."""
    return PlanRefused(
        409,
        f"plan {plan.id} waits for approval (plans.second.person): anyone but {plan.created_by!r}, who made it, can "
        "approve it who may apply it; apply it then",
        state=plan.state.value,
    )


def own_plan(plan: PlanHeader) -> ProtocolError:
    """The refusal of an approval by the maker of the plan, or through a token of the same account."""
    return PlanRefused(
        409,
        f"{plan.created_by!r} made plan {plan.id}: someone else has to approve it who may apply it",
        state=plan.state.value,
    )


def has_moved(state: PlanState, moved: Sequence[TopicPartition]) -> ProtocolError:
    """The refusal of a plan in this state on whose partitions something was committed since."""
    since, remedy = (
        ("the plan was made", "make a new plan")
        if state is PlanState.PLANNED
        else ("the plan was applied", "undoing the plan would lose that; make a new plan with to-committed-at")
    )
    return PlanRefused(409, f"{names_of(moved)} was committed or removed since {since}: {remedy}", **listed(moved))


def is_gone(verb: str, topics: Sequence[str]) -> ProtocolError:
    """The refusal of a step, since these topics are not those of the plan any more."""
    named = ", ".join(topics[:MOST_NAMED]) + (" and others" if len(topics) > MOST_NAMED else "")
    return PlanRefused(
        409,
        f"the plan cannot be {verb}: {named} was deleted since the plan was made, and a new topic of that name "
        "has other offsets: make a new plan",
        topics=list(topics[:MOST_LISTED]),
    )


def names_of(partitions: Sequence[TopicPartition]) -> str:
    """The first of them, for a message."""
    named = ", ".join(f"{topic}-{partition}" for topic, partition in partitions[:MOST_NAMED])
    return f"{named} and others" if len(partitions) > MOST_NAMED else named


def listed(partitions: Sequence[TopicPartition]) -> ProblemFields:
    """The first of them, as data."""
    return {"partitions": [{"topic": topic, "partition": p} for topic, p in partitions[:MOST_LISTED]]}
