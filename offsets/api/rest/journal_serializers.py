"""Request and response of the journal's endpoint."""

from __future__ import annotations

from rest_framework import serializers

from kcoord.control.rest.answers import Answer, NextCursor
from kcoord.control.rest.fields import Choice, PeriodQuery, Text
from kcoord.door.http.types import INT32_MAX
from offsets.journal.reading import KINDS, JournalLineView


class JournalQuery(PeriodQuery):
    """Parameters of the history of a group's offsets."""

    of = "changes"
    topic = Text(required=False, max_length=249, help_text="Only this topic.")
    partition = serializers.IntegerField(
        required=False, min_value=0, max_value=INT32_MAX, help_text="Only this partition of `topic`."
    )
    kind = serializers.ListField(
        child=Choice(KINDS), required=False, max_length=len(KINDS), help_text="One of these kinds. Repeatable."
    )


class JournalPage(Answer):
    """A page of the history, newest first."""

    group_id: str
    commits: list[JournalLineView]
    next_cursor: NextCursor
