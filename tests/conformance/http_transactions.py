"""TxnOffsetCommit and EndTxn over HTTP (http-api.md 2, "transactional commit").

The convention has no transaction coordinator: its producers are numbers that nothing binds to a transactional id, and
one id may be named with several. In the service a transactional id has one producer. So the first producer that a case
names with an id has that id, each other one an id derived from it; `EndTxn` goes to the id of its producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tests.conformance.cases import Case
from tests.conformance.http_offsets import commit_topics, read_commit
from tests.conformance.http_terms import Args, Exchange, HttpRequest, group_path, read_error, single


def transactional_ids(case: Case) -> Mapping[int, tuple[str, str]]:
    """Of each producer of a case: the transactional id that is sent, and the one that the case says."""
    found: dict[int, tuple[str, str]] = {}
    taken: set[str] = set()
    for step in case.steps:
        if step.kind == "call" and step.subject == "TxnOffsetCommit":
            producer, named = step.args["producer_id"], step.args["transactional_id"]
            if producer not in found:
                found[producer] = f"{named}~{producer}" if named in taken else named, named
                taken.add(named)
    return found


class Transactions:
    """The calls of one run of a case. `EndTxn` speaks with the epoch that its producer had last."""

    def __init__(self, case: Case) -> None:
        self._ids = transactional_ids(case)
        self._epochs: dict[int, int] = {}

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """The calls by name."""
        return {"TxnOffsetCommit": single(self._commit, read_commit), "EndTxn": single(self._end, read_error)}

    def _commit(self, args: Args) -> HttpRequest:
        producer = args["producer_id"]
        self._epochs[producer] = args["producer_epoch"]
        body: dict[str, Any] = {
            "transactional_id": self._ids[producer][0],
            "producer_id": producer,
            "producer_epoch": args["producer_epoch"],
            "generation_id": args.get("generation_id", -1),
            "member_id": args.get("member_id", ""),
            "group_instance_id": args.get("group_instance_id"),
            "topics": commit_topics(args["offsets"]),
        }
        return HttpRequest("POST", group_path(args["group_id"], "/offsets/txn-commit"), body)

    def _end(self, args: Args) -> HttpRequest:
        producer = args["producer_id"]
        transactional_id, _ = self._ids.get(producer, (f"of-{producer}", ""))
        body = {
            "producer_id": producer,
            "producer_epoch": args.get("producer_epoch", self._epochs.get(producer, 0)),
            "committed": args["committed"],
        }
        return HttpRequest("POST", f"/v1/transactions/{quote(transactional_id, safe='')}/end", body)
