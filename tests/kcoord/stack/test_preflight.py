"""What keeps the stack from starting: one line with the remedy each."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kcoord.config import Config
from kcoord.stack import preflight, services
from kcoord.stack.embedded import Embedded
from kcoord.stack.gate import Gate
from kcoord.stack.preflight import StartProblem
from tests.support.processes import ROOT, environment, free_port


def problem_of(call: object, *arguments: object) -> str:
    """The one line of the problem that a check raises."""
    with pytest.raises(StartProblem) as caught:
        call(*arguments)  # type: ignore[operator]
    text = str(caught.value)
    assert "\n" not in text
    return text


def data_dir(path: Path) -> Config:
    """Settings with this data directory."""
    return Config({"data.dir": str(path)})


def test_a_port_in_use_names_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"KCOORD_PORT={port + 1 if port < 65_535 else 8000}" in problem_of(preflight.bind, "127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    assert "KCOORD_HOST" in problem_of(preflight.bind, "192.0.2.1", 8000)
    assert "KCOORD_HOST" in problem_of(preflight.bind, "no such host", 8000)


def test_a_bound_address_is_refused_to_others_only_once_it_listens() -> None:
    with preflight.bind("127.0.0.1", free_port()) as listener, pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener.getsockname())


def test_a_file_in_place_of_the_data_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    text = problem_of(preflight.make_data_dir, data_dir(path))
    assert str(path) in text
    assert "KCOORD_DATA_DIR" in text


def test_a_data_directory_where_none_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "Not a directory" in problem_of(preflight.make_data_dir, data_dir(tmp_path / "file" / "below"))


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Be nobody in particular for a while, if we are root, who may read and write everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o500])
def test_a_data_directory_without_access(mode: int) -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        path = Path(parent) / "closed"
        path.mkdir(mode=mode)
        with as_ordinary_user():
            assert "read and write access" in problem_of(preflight.make_data_dir, data_dir(path))


def test_a_data_directory_with_files_of_somebody_else() -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o777)
        lock = Path(parent) / preflight.LOCK_FILE
        lock.touch(mode=0o000)
        with as_ordinary_user():
            assert "read and write access" in problem_of(preflight.lock_data_dir, Path(parent), print)


def test_a_new_data_directory_is_its_owners_alone(tmp_path: Path) -> None:
    made = preflight.make_data_dir(data_dir(tmp_path / "new" / "data"))
    assert made.stat().st_mode & 0o777 == 0o700


def test_a_setting_that_cannot_be_used_is_named() -> None:
    text = problem_of(preflight.read_config, {"KCOORD_PORT": "many", "KCOORD_COLOUR": "red"})
    assert text.startswith("KCOORD_PORT='many': expected a whole number")
    assert "1 more" in text


def test_a_database_that_is_not_there() -> None:
    url = f"postgresql://kcoord:topsecret@127.0.0.1:{free_port()}/kcoord"
    text = problem_of(preflight.check_database, url)
    assert text.startswith("KCOORD_DATABASE_URL")
    assert "unset KCOORD_DATABASE_URL" in text
    assert "topsecret" not in text


@pytest.mark.parametrize("url", ["nonsense", "mysql://localhost/kcoord", "postgresql://localhost:port/kcoord"])
def test_a_database_address_that_is_none(url: str) -> None:
    assert problem_of(preflight.check_database, url).startswith("KCOORD_DATABASE_URL")


def test_a_database_that_is_there(database: str) -> None:
    preflight.check_database(database)


def test_a_broker_that_is_not_there() -> None:
    text = problem_of(preflight.check_broker, f"redis://:topsecret@127.0.0.1:{free_port()}/0")
    assert text.startswith("KCOORD_BROKER_URL: Redis cannot be reached")
    assert "topsecret" not in text


def test_a_broker_address_that_is_none() -> None:
    assert problem_of(preflight.check_broker, "localhost:6379").startswith("KCOORD_BROKER_URL")


def test_a_broker_of_another_kind_is_left_to_celery() -> None:
    preflight.check_broker("amqp://127.0.0.1:1//")


@pytest.mark.parametrize(("url", "remedy"), [("sqs://", "'celery[sqs]'"), ("nats://broker", "redis://host:6379/0")])
def test_a_broker_that_celery_cannot_use_here_is_one_line_with_the_remedy(url: str, remedy: str) -> None:
    assert remedy in problem_of(preflight.check_broker, url)


def test_passwords_do_not_get_into_messages() -> None:
    error = ValueError("cannot reach postgresql://ann:s3cret@db/x\nor redis://:other@cache/0")
    assert preflight.one_line(error) == "cannot reach postgresql://ann:***@db/x or redis://:***@cache/0"


HOLDER = """
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from kcoord.stack import preflight
preflight.lock_data_dir(Path(sys.argv[1]), print)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_data_directory_belongs_to_one_stack_at_a_time(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=ROOT,
        env=environment(None, tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        text = problem_of(preflight.lock_data_dir, tmp_path, print)
        assert f"process {holder.pid}" in text
        holder.communicate()
    os.close(preflight.lock_data_dir(tmp_path, print))


LEAVING = """
import subprocess, sys
from pathlib import Path
from kcoord.stack import preflight
lock = preflight.lock_data_dir(Path(sys.argv[1]), print)
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=(lock,))
print(child.pid, flush=True)
"""


def test_what_a_killed_stack_left_behind_is_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEAVING, str(tmp_path)],
        cwd=ROOT,
        env=environment(None, tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as gone:
        assert gone.stdout is not None
        assert gone.stdin is not None
        child = int(gone.stdout.readline())
        gone.wait(10)
        said: list[str] = []

        def say(text: str) -> None:
            said.append(text)
            os.kill(child, signal.SIGKILL)

        os.close(preflight.lock_data_dir(tmp_path, say))
        assert said == [f"the last run (process {gone.pid}) was killed; waiting for what it left behind to end"]


def test_every_process_of_a_stack_holds_its_lock() -> None:
    with socket.socket() as listener:
        plan = preflight.Plan(Config({}), Path("/nowhere"), listener, lock=77)
        server = Embedded(Path("/bin"), Path("/nowhere/postgres"), Path("/nowhere/postgres"), None)
        commands = [services.setup(plan, {}), services.postgres(plan, server, {}), *services.services(plan, {}, Gate())]
    assert [command.name for command in commands if 77 not in command.pass_fds] == []
    assert [command.name for command in commands if command.last] == ["postgres"]
    assert services.install_spark(plan, {}).pass_fds == ()  # uv may outlive all of them
