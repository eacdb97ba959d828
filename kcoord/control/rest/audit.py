"""The audit over the REST API: an addition to the contract (http-api.md 7)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from kcoord.access.audit.acts import ACTS
from kcoord.access.audit.encoding import to_json
from kcoord.access.audit.reading import AuditFilter, Sight, read_records
from kcoord.access.rights import Permission
from kcoord.control.rest.answers import Answer, Instant, NextCursor, doc, one_of
from kcoord.control.rest.fields import Choice, PeriodQuery, Text
from kcoord.control.rest.schema import describe
from kcoord.control.rest.views import ControlView
from kcoord.database.paging import Page, decode_cursor, encode_cursor
from kcoord.door.http.types import INT32_MAX
from kcoord.process.runtime import Runtime
from kcoord.requests.current import Door, Kind

RESULTS = ("done", "refused")
MOST_FILTERS = 50


class AuditQuery(PeriodQuery):
    """Parameters of the audit."""

    of = "records"
    act = serializers.ListField(
        child=Choice(list(ACTS)), required=False, max_length=MOST_FILTERS, help_text="One of these acts. Repeatable."
    )
    resource = Text(required=False, max_length=64, help_text="The kind of thing, such as `group` or `token`.")
    name = Text(required=False, max_length=255, help_text="Part of the name of the thing, case-insensitive.")
    principal = Text(required=False, max_length=255, help_text="Part of the principal's name, case-insensitive.")
    result = Choice(RESULTS, required=False, help_text="Only what was done, or only what was refused.")


class AuditRecordView(Answer):
    """A record of the audit."""

    seq: Annotated[int, doc("Its number in the chain.")]
    at: Instant
    kind: Annotated[str, one_of([kind.value for kind in Kind], "What the principal is.")]
    principal: Annotated[str, doc("Name of the account, token, user of the machine, or node.")]
    principal_id: Annotated[str, doc("Id of the account or token.")]
    address: Annotated[str, doc("Address of the client.")]
    request_id: str
    door: Annotated[str, one_of([door.value for door in Door], "How the request came in.")]
    act: Annotated[str, one_of(list(ACTS))]
    resource: Annotated[str, doc("What kind of thing it is about.")]
    name: Annotated[str, doc("The name of the thing.")]
    before: Annotated[dict[str, Any] | None, doc("What was there before, by name.")]
    after: Annotated[dict[str, Any] | None, doc("What is there since, by name.")]
    reason: Annotated[str, doc("Why, as the principal says, or why it was refused.")]
    result: Annotated[str, one_of(RESULTS)]
    error: Annotated[str, doc("The error of what was refused.")]
    count: Annotated[int, Meta(ge=1, le=INT32_MAX, description="How often, within about a minute.")]
    prev: Annotated[str, doc("Hash of the record before, in hex.")]
    hash: Annotated[str, doc("Hash of the record, in hex.")]


class AuditPage(Answer):
    """A page of the audit, newest first."""

    records: list[AuditRecordView]
    next_cursor: NextCursor


class AuditView(ControlView):
    """`/v1/audit`."""

    @describe(
        "listAudit",
        "List what was done and refused, newest first",
        tag="audit",
        takes=Permission.DESCRIBE_GROUP,
        query=AuditQuery,
        response=AuditPage,
        description="A caller with `admin` on everything sees all records. Others see what was done to groups and "
        "topics that they may describe and, with `describe` on the cluster, Spark runs; without addresses and request "
        "ids, and of groups without `before`, `after` and `reason` unless they may describe all topics.",
    )
    def get(self, request: Request) -> Response:
        """A page of records."""
        query = self.query(AuditQuery)
        sight = Sight.of(self.principal)
        wanted = AuditFilter(
            acts=query.get("act"),
            resources=[query["resource"]] if "resource" in query else None,
            result=query.get("result"),
            who=query.get("principal"),
            name=query.get("name"),
            since=query.get("since"),
            until=query.get("until"),
            before=int(decode_cursor(query["cursor"], int)[0]) if "cursor" in query else None,
        )

        async def read(runtime: Runtime) -> Page[dict[str, Any]]:
            async with runtime.db.connection() as connection:
                found, before = await read_records(runtime.db, connection, sight, wanted, query["limit"])
            return Page([to_json(record) for record in found], None if before is None else encode_cursor(before))

        page = self.service(read)
        return self.listed(AuditPage, "records", page)
