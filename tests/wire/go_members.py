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
    """A member of franz-go; the assignor of the consumer protocol is the server's. Skips the test without Go."""

    def __init__(
        self,
        listening: Listening,
        group: str,
        protocol: str,
        instance: str,
        assignor: str,
        session_ms: int = 120_000,
        transactional_id: str = "",
    ) -> None:
        program = golang.built(PROGRAM)
        directory = tempfile.TemporaryDirectory(prefix="go-member-")
        given = [
            f"127.0.0.1:{listening.port}",
            group,
            TOPIC,
            assignor if protocol == "classic" else "server",
            str(session_ms),
        ]
        env = environment(None, Path(directory.name), {"KCOORD_TOKEN": listening.service.token})
        if transactional_id:
            env["KCOORD_TRANSACTIONAL_ID"] = transactional_id
        super().__init__([program, *given, *([instance] if instance else [])], env, directory)

    def transaction(self, partition: int, offset: int, end: str) -> None:
        """Commit an offset in a transaction. `end`: "commit" or "abort"."""
        self.ask("transaction", partition, offset, end)
