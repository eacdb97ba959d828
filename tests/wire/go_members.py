"""Members of franz-go: processes that are told by lines what to do."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.processes.test_examples import TOPIC
from tests.support.processes import environment
from tests.wire import golang
from tests.wire.kafka_workers import Listening
from tests.wire.process_members import ProcessMember

PROGRAM = Path(__file__).parent / "go_member"


class FranzGo(ProcessMember):
    """A member of franz-go, of the classic protocol. Skips the test without Go or its modules."""

    def __init__(
        self,
        listening: Listening,
        group: str,
        protocol: str,
        instance: str,
        assignor: str,
        session_ms: int = 120_000,
    ) -> None:
        assert protocol == "classic", "it has the other for trials only"
        program = golang.built(PROGRAM)
        directory = tempfile.TemporaryDirectory(prefix="go-member-")
        given = [f"127.0.0.1:{listening.port}", group, TOPIC, assignor, str(session_ms)]
        env = environment(None, Path(directory.name), {"KCOORD_TOKEN": listening.service.token})
        super().__init__([program, *given, *([instance] if instance else [])], env, directory)
