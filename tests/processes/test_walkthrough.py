"""docs/http-walkthrough.md, pasted into a shell, twice; and the groups that the pages use."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.support.processes import ROOT, Running, start_server

pytestmark = [pytest.mark.processes, pytest.mark.whole("pastes a page of the docs into a shell, twice")]

PAGE = ROOT / "docs" / "http-walkthrough.md"
SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 100}


def paste(server: Running, token: str) -> str:
    """The output of all commands of the page, against this server."""
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL))
    commands, exported = re.subn(r"^export KCOORD_TOKEN=.*$", f"export KCOORD_TOKEN={token}", commands, flags=re.M)
    assert exported == 1
    assert "api=http://127.0.0.1:8000/v1\n" in commands
    commands = commands.replace("http://127.0.0.1:8000", server.url)
    done = subprocess.run(["sh", "-c", commands], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return done.stdout


def errors(output: str) -> list[str]:
    return [name for name in re.findall(r'"error":"(\w+)"', output) if name != "NONE"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on the path")
def test_the_walk_through_works_again_and_again(database: str, token: str) -> None:
    with start_server(database, env=SETTINGS) as server:
        server.wait_ready()
        assert errors(paste(server, token)) == []
        for _ in range(2):
            output = paste(server, token)
            assert errors(output) == ["TOPIC_ALREADY_EXISTS"]
            assert '"committed_offset":42' in output
            assert '"orders":[0,1,2,3]' in output


def test_no_other_page_lets_people_commit_in_the_group_of_the_exactly_once_example() -> None:
    """What they commit there, the example would take for billed."""
    (group,) = re.findall(r'^GROUP, TOPIC = "(\w+)"', (ROOT / "docs/examples/billing.py").read_text(), re.MULTILINE)
    for name in ("README.md", "docs/http-walkthrough.md", "docs/client.md"):
        page = (ROOT / name).read_text()
        blocks = "\n".join(re.findall(r"```(?:sh|python)\n(.*?)```", page, re.DOTALL))
        assert blocks
        assert not re.search(rf'groups/{group}/|\("\w+", group_id="{group}"', blocks), name
