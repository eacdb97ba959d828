"""--set-labels, --describe --labels and --list --label."""

from __future__ import annotations

import httpx

from groups.engine.service import GroupService
from kcoord.control.rest.labels import MAX_LABEL_NAME
from tests.kcoord.kgroups.conftest import Kgroups
from tests.support.rest_groups import stable_group


async def test_labels_are_set_shown_and_removed(kgroups: Kgroups, api: httpx.AsyncClient) -> None:
    runbook = "https://wiki.example.com/?a=b,c"
    run = await kgroups("--set-labels", "--group", "g", "--label", "owner=ann b", "--label", f"runbook={runbook}")
    header = ["GROUP", "LABEL", "VALUE"]
    assert (run.status, run.rows) == (0, [header, ["g", "owner", "ann", "b"], ["g", "runbook", runbook]])
    assert (await api.get("/v1/groups/g/labels")).json()["labels"] == {"owner": "ann b", "runbook": runbook}
    run = await kgroups("--set-labels", "--group", "g", "--label", "owner=", "--remove-label", "runbook")
    assert run.rows == [header, ["g", "owner", "-"]]
    assert (await kgroups("--describe", "--group", "g", "--labels")).rows == [header, ["g", "owner", "-"]]
    run = await kgroups("--set-labels", "--group", "g", "--remove-label", "owner")
    assert (run.status, run.out, run.err) == (0, "", "\nGroup 'g' has no labels.\n")


async def test_what_is_refused_is_an_error_of_its_group(kgroups: Kgroups) -> None:
    run = await kgroups("--set-labels", "--group", "g", "--group", "a/b", "--label", "owner=ann")
    assert run.status == 1
    assert "The labels of group 'a/b' could not be changed: INVALID_GROUP_ID: " in run.out
    assert "ann" in run.out, "the other group has it"
    run = await kgroups("--set-labels", "--group", "g", "--label", f"{'n' * (MAX_LABEL_NAME + 1)}=x")
    assert (run.status, "could not be changed: INVALID_REQUEST: labels" in run.out) == (1, True)


async def test_groups_are_listed_by_label(kgroups: Kgroups, service: GroupService) -> None:
    for group_id in ("a", "b", "c"):
        await service.put(stable_group(group_id))
    await kgroups("--set-labels", "--group", "a", "--group", "b", "--label", "team=money")
    await kgroups("--set-labels", "--group", "c", "--label", "team=other")
    assert (await kgroups("--list", "--label", "team=money")).out == "a\nb\n"
    assert (await kgroups("--list", "--label", "team")).out == "a\nb\nc\n"
    assert (await kgroups("--list", "--label", "team=other", "--label", "owner")).out == "c\n"
    run = await kgroups("--set-labels", "--all-groups", "--label", "team=all")
    assert [row[0] for row in run.rows if row[-1] == "all"] == ["a", "b", "c"]
