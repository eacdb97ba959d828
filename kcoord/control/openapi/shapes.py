"""What generators of typed clients need, applied to the whole document after both planes are in it.

- A field of a response is required unless it can be absent: having a default in the code does not make it optional.
- Enumerations are components with names: inline ones become one type per place.
- A number that may be sent as text is described as a number, else typed clients get a union to take apart.
- What an operation answers is not called `...Response`: generators for Go wrap answers in types of such names.
- Null is written in one way: `type: [T, "null"]`, or `anyOf` with a reference.
- Integers say whether they fit 32 bits; without a format, generators take all of them for 32-bit numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kcoord.control.rest.answers import PREFIX
from kcoord.door.http.types import INT32_MAX

Json = dict[str, Any]

NULL: Json = {"type": "null"}
EMPTY: Json = {"type": "string", "maxLength": 0}

ENUMS: Mapping[str, tuple[str, str]] = {
    "ErrorName": ("Problem", "error"),
    "Action": ("Problem", "action"),
    "ResultName": ("CommittedPartition", "error"),
    "GroupType": ("GroupLine", "type"),
    "GroupState": ("GroupLine", "state"),
    "VerdictKind": ("GroupVerdict", "verdict"),
    "ClassicGroupState": ("GroupView", "state"),
    "ConsumerGroupState": ("ConsumerGroupView", "state"),
    "ClassicMemberState": ("MemberView", "state"),
    "ConsumerMemberState": ("ConsumerMemberView", "state"),
    "ShareGroupState": ("ShareGroupView", "state"),
    "MemberProtocol": ("ConsumerMemberView", "member_type"),
    "EventKind": ("EventView", "kind"),
    "CommitKind": ("JournalLineView", "kind"),
    "KeptReason": ("CommittedPartitionView", "kept"),
    "SettingSource": ("GroupSettingView", "source"),
    "PlanStrategy": ("PlanView", "strategy"),
    "PlanState": ("PlanView", "state"),
    "RunKind": ("RunView", "kind"),
    "StartableRunKind": ("NewRun", "kind"),
    "RunState": ("RunView", "state"),
    "FindingKind": ("FindingView", "kind"),
    "ItemState": ("ItemView", "state"),
    "DeadLetterCause": ("DeadLetterView", "cause"),
    "CoordinatorRouting": ("NodeList", "routing"),
    "NodeEndReason": ("NodeView", "end_reason"),
    "CoordinatorPartitionState": ("CoordinatorPartitionView", "state"),
    "PartitionChangeReason": ("PartitionChangeView", "reason"),
    "ReceiverSource": ("ReceiverView", "source"),
    "RuleEffect": ("RuleView", "effect"),
    "RuleOperation": ("RuleView", "operation"),
    "RuleResource": ("RuleView", "resource"),
    "RulePattern": ("RuleView", "pattern"),
    "AclPattern": ("/v1/acls", "pattern"),
    "Role": ("NewAcls", "role"),
    "QuotaKind": ("QuotaView", "kind"),
    "QuotaBudget": ("QuotaView", "budget"),
    "AuditPrincipalKind": ("AuditRecordView", "kind"),
    "AuditDoor": ("AuditRecordView", "door"),
    "AuditAct": ("AuditRecordView", "act"),
    "AuditResult": ("AuditRecordView", "result"),
    "AlertState": ("/v1/alerts", "state"),
    "AlertNotice": ("MessageView", "notice"),
    "AlertMessageState": ("MessageView", "state"),
    "GroupSort": ("/v1/groups", "sort"),
    "LivenessStatus": ("Liveness", "status"),
    "ReadinessStatus": ("Readiness", "status"),
}
"""Name of each enumeration -> one place that has it: schema and field, or path and parameter of a GET."""

OF_TEXT = "May be sent as a string with the number in decimal, for languages whose numbers have 53 bits."

NEVER_NULL = (("SyncRequest", "protocol_type"), ("SyncRequest", "protocol_name"))
"""Null is not refused as malformed but has an error of its own (classic.md 3.1 row 1). No client should send it."""


def shape(document: Json) -> None:
    """Apply the rules above, in place. Raises ValueError naming an enumeration that has no name in `ENUMS`."""
    schemas = document["components"]["schemas"]
    for schema, field in NEVER_NULL:
        property_ = schemas[schema]["properties"][field]
        schemas[schema]["properties"][field] = next(one for one in property_["anyOf"] if one != NULL)
    _rename_answers(document)
    _require_fields(document)
    for part in (schemas, document["paths"]):
        for found in _schemas(part):
            _simplify(found)
            _describe_as_number(found)
    _name_enums(document)
    for part in (schemas, document["paths"]):
        for found in _schemas(part):
            _add_format(found)


def reachable(document: Json, *, requests: bool) -> set[str]:
    """Names of the schemas that requests, or responses, consist of."""
    todo: list[Any] = []
    for path in document["paths"].values():
        for operation in path.values():
            todo.append(operation.get("requestBody", {}) if requests else operation["responses"])
    found: set[str] = set()
    while todo:
        for name in _references(todo.pop()):
            if name not in found:
                found.add(name)
                todo.append(document["components"]["schemas"][name])
    return found


def _references(tree: Any) -> Iterator[str]:
    for part in _objects(tree):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].removeprefix(PREFIX)


def _objects(tree: Any) -> Iterator[Json]:
    """Every object of a JSON tree, examples left out; the inner ones first."""
    if isinstance(tree, dict):
        for key, item in list(tree.items()):
            if key not in ("example", "examples"):
                yield from _objects(item)
        yield tree
    elif isinstance(tree, list):
        for item in tree:
            yield from _objects(item)


def _schemas(tree: Any) -> list[Json]:
    """Every object that may be a schema: all but the mappings of names to fields."""
    names = {id(part["properties"]) for part in _objects(tree) if isinstance(part.get("properties"), dict)}
    return [part for part in _objects(tree) if id(part) not in names]


def _require_fields(document: Json) -> None:
    """Responses have all fields that have a default; a default says nothing in a response, nor does null in any."""
    answered = reachable(document, requests=False)
    for name, schema in document["components"]["schemas"].items():
        for field, found in schema.get("properties", {}).items():
            if name in answered and "default" in found:
                schema.setdefault("required", []).append(field)
                del found["default"]
            elif "default" in found and found["default"] is None:
                del found["default"]


def _simplify(schema: Json) -> None:
    """`anyOf` or `oneOf` of a type and null -> `type` with "null"; a single `allOf` -> the reference itself.

    A text that may be empty only so that it can be refused with its own error is described as what is accepted, and a
    tuple of items of one kind as a list of that length: generators of clients know no `prefixItems`.
    """
    if (kinds := schema.get("prefixItems")) and all(kind == kinds[0] for kind in kinds):
        del schema["prefixItems"]
        schema["items"] = kinds[0]
    if schema.get("format") == "date-time" and schema["type"] == "integer":
        schema["type"] = "string"  # `kcoord.control.rest.answers.Instant` declares what it is made of
    if EMPTY in schema.get("oneOf", ()):
        (accepted,) = (choice for choice in schema.pop("oneOf") if choice != EMPTY)
        schema.update(accepted)
    if len(schema.get("allOf", ())) == 1 and set(schema["allOf"][0]) == {"$ref"}:
        schema.update(schema.pop("allOf")[0])
    kind = "oneOf" if "oneOf" in schema else "anyOf"
    if NULL not in schema.get(kind, ()):
        return
    choices = schema.pop(kind)
    others = [choice for choice in choices if choice != NULL]
    if len(others) == 1 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        for key, value in others[0].items():
            schema.setdefault(key, value)
        schema["type"] = [others[0]["type"], "null"]
    else:
        schema["anyOf"] = [*others, NULL]


def _describe_as_number(schema: Json) -> None:
    """`anyOf` of an integer and its text, which has a pattern -> the integer. A word instead of a number stays."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != NULL]
    if [choice.get("type") for choice in choices] != ["integer", "string"] or "pattern" not in choices[1]:
        return
    nullable = NULL in schema.pop("anyOf")
    number = {**choices[0], "type": ["integer", "null"] if nullable else "integer"}
    said = schema.get("description")
    schema.update(number)
    schema["description"] = f"{said} {OF_TEXT}" if said else OF_TEXT


def _rename_answers(document: Json) -> None:
    """`JoinResponse` -> `JoinResult`, with all references. Raises ValueError if there is such a schema already."""
    schemas = document["components"]["schemas"]
    renamed = {name: f"{name.removesuffix('Response')}Result" for name in schemas if name.endswith("Response")}
    both = sorted(set(renamed.values()) & set(schemas))
    if both:
        raise ValueError(f"there are two schemas named {', '.join(both)}")
    for part in _objects(document):
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.removeprefix(PREFIX) in renamed:
            part["$ref"] = PREFIX + renamed[reference.removeprefix(PREFIX)]
    for name, new in renamed.items():
        found = schemas[new] = schemas.pop(name)
        if found.get("title") == name:
            found["title"] = new


def _name_enums(document: Json) -> None:
    schemas = document["components"]["schemas"]
    values = {name: _enum_at(document, *place) for name, place in ENUMS.items()}
    names = {frozenset(members): name for name, members in values.items()}
    for part in (schemas, document["paths"]):
        for schema in _schemas(part):
            if not isinstance(schema.get("enum"), list):
                continue
            found = frozenset(schema["enum"]) - {None}
            if found not in names:
                raise ValueError(f"the enumeration of {sorted(found)} has no name; give it one in ENUMS")
            _refer(schema, names[found], "enum", nullable=None in schema["enum"])
    for name, members in values.items():
        schemas[name] = {"type": "string", "enum": members}


def _enum_at(document: Json, place: str, field: str) -> list[str]:
    if place.startswith("/"):
        parameters = document["paths"][place]["get"]["parameters"]
        found = next(parameter["schema"] for parameter in parameters if parameter["name"] == field)
    else:
        found = document["components"]["schemas"][place]["properties"][field]
    found = next(choice for choice in (found, *found.get("anyOf", ())) if "enum" in choice)
    return [member for member in found["enum"] if member is not None]


def _refer(schema: Json, name: str, instead_of: str, *, nullable: bool) -> None:
    """Replace what a schema says itself by a reference; its description and default stay."""
    del schema[instead_of]
    for key in ("type", "minLength"):
        schema.pop(key, None)
    reference = {"$ref": PREFIX + name}
    schema.update({"anyOf": [reference, NULL]} if nullable else reference)


def _add_format(schema: Json) -> None:
    type_ = schema.get("type")
    if "format" in schema or (type_ != "integer" and type_ != ["integer", "null"]):
        return
    small = "maximum" in schema and schema["maximum"] <= INT32_MAX and schema.get("minimum", 0) >= -INT32_MAX - 1
    schema["format"] = "int32" if small and "minimum" in schema else "int64"
