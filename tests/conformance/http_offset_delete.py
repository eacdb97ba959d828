"""OffsetDelete over HTTP (http-api.md 4)."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.driver import Response
from tests.conformance.http_terms import Args, Exchange, HttpAnswer, HttpRequest, error_name, group_path, single


def _request(args: Args) -> HttpRequest:
    topics = [{"name": name, "partitions": partitions} for name, partitions in args["topics"].items()]
    return HttpRequest("POST", group_path(args["group_id"], "/offsets/delete"), {"topics": topics})


def _read(answer: HttpAnswer, args: Args) -> Response:
    if answer.error != "NONE":
        return {"error": answer.error, "partitions": {}}
    return {
        "error": "NONE",
        "partitions": {
            topic["name"]: {str(entry["partition"]): error_name(entry["error_code"]) for entry in topic["partitions"]}
            for topic in answer.body["topics"]
        },
    }


EXCHANGES: Mapping[str, Exchange] = {"OffsetDelete": single(_request, _read)}
