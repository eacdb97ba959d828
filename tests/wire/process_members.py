"""Members that are processes of other languages: they are told by lines what to do, and answer by lines."""

from __future__ import annotations

import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ANSWER_SECONDS = 90.0


class ProcessMember:
    """A member of the protocol that `java_member/Member.java` describes. `revoked`: what it had to give up, set by set.

    `directory`: its own; it is removed when the process has ended.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None, directory: tempfile.TemporaryDirectory[str]
    ) -> None:
        self.revoked: list[set[int]] = []
        self._directory = directory
        self._answers: queue.Queue[str] = queue.Queue()
        self._said = Path(directory.name) / "err"
        with self._said.open("wb") as err:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True, env=env
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("revoked"):
                self.revoked.append({int(number) for number in line.split()[1:]})
            else:
                self._answers.put(line.rstrip("\n"))
        self._answers.put("! it ended")

    def ask(self, *words: object) -> str:
        """The answer to a line. Raises AssertionError if it is an error, or the process has ended."""
        answer = self.attempt(*words)
        assert answer.startswith("="), f"{words}: {answer}\n{self._said.read_text()[-2_000:]}"
        return answer[2:]

    def attempt(self, *words: object) -> str:
        """As `ask`, but an error is an answer, too: "! " and what it is."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
            return self._answers.get(timeout=ANSWER_SECONDS)
        except (BrokenPipeError, queue.Empty) as error:
            raise AssertionError(f"{words}: {error!r}\n{self._said.read_text()[-2_000:]}") from error

    def poll(self) -> None:
        """It polls by itself."""

    def numbers(self) -> set[int]:
        """The partitions that it has."""
        return {int(number) for number in self.ask("numbers").split()}

    def commit(self, partition: int, offset: int) -> None:
        """Commit an offset."""
        self.ask("commit", partition, offset)

    def committed(self, partition: int) -> int:
        """What the coordinator has; negative if nothing."""
        return int(self.ask("committed", partition))

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._ended()

    def close(self) -> None:
        """Leave the group, as the client does when it is closed. Nothing after `kill` or a `close` before."""
        if self._process.returncode is None:
            try:
                self.ask("close")
            finally:
                self._process.kill()
                self._ended()

    def _ended(self) -> None:
        self._process.wait()
        self._reader.join()
        self._directory.cleanup()
