"""What `kcoord.stack.run` runs, and the checks before it. Everything is logged as JSON, crashes and warnings too."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from contextlib import redirect_stdout
from types import TracebackType

import structlog

from kcoord.config import Config
from kcoord.database.address import libpq_conninfo
from kcoord.door.http import logs
from kcoord.stack import bootstrap, services
from kcoord.stack.preflight import EXIT_STATUS, StartProblem, bind, check_broker, read_config

log = structlog.get_logger(__name__)


def run(role: str) -> int:
    """Run a role until it ends; returns the exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    logs.configure("info")
    logging.captureWarnings(True)
    sys.excepthook = _log_crash
    try:
        config = read_config(os.environ)
        _check_shared(config, role)
        logs.configure(config.str("log.level"))
        return {"server": _server, "worker": _worker, "beat": _beat, "migrate": _migrate}[role](config)
    except StartProblem as problem:
        log.error("cannot_start", role=role, problem=str(problem))
        return EXIT_STATUS


def _check_shared(config: Config, role: str) -> None:
    """Raises StartProblem without the settings that the processes of one service must share."""
    if not config.str("database.url"):
        raise StartProblem(
            "KCOORD_DATABASE_URL is not set; name the Postgres that all processes use, or start everything with "
            "`python -m kcoord.stack`, which has one of its own"
        )
    if role == "server" and not config.str("secret.key") and not (config.data_dir / "secret_key").is_file():
        raise StartProblem(
            "KCOORD_SECRET_KEY is not set, so sign-ins would end with this process and be unknown to others; give all "
            "servers the same one, e.g. of `openssl rand -base64 48`"
        )


def _server(config: Config) -> int:
    from kcoord.stack.server import serve

    _check_settings()
    bootstrap.refuse_too_old(libpq_conninfo(config.str("database.url"), config.data_dir))
    return serve(config, bind(config.str("host"), config.int("port")))


def _check_settings() -> None:
    """Raises StartProblem for settings that our checks refuse; their warnings are logged."""
    import django

    django.setup()
    with redirect_stdout(_Events()):
        bootstrap.check()


def _worker(config: Config) -> int:
    check_broker(config.str("broker.url"))
    _check_settings()
    warnings.filterwarnings("ignore", services.ROOT_WARNING)
    from celery.apps import worker

    # It writes plain text from the signal handler, where a log would not be safe either.
    worker.safe_say = lambda *_: None
    return _celery(services.worker_options())


def _beat(config: Config) -> int:
    check_broker(config.str("broker.url"))
    _check_settings()
    # Beat would crash, and a supervisor that waits longer after each crash delay the timers long after the outage.
    with redirect_stdout(_Events()):
        bootstrap.wait_for(libpq_conninfo(config.str("database.url"), config.data_dir), bootstrap.STARTING_SECONDS)
    return _celery(services.beat_options())


def _celery(options: list[str]) -> int:
    from celery.__main__ import main

    os.environ.update(services.QUICKLY)
    sys.argv = ["celery", *options]
    main()  # exits
    return 0


def _migrate(config: Config) -> int:
    with redirect_stdout(_Events()):
        bootstrap.migrate_shared()
    log.info("migrated")
    return 0


class _Events(io.TextIOBase):
    """What is printed becomes events of the log, a line each."""

    def write(self, text: str) -> int:
        """Log the lines of `text`."""
        for line in filter(str.strip, text.splitlines()):
            log.info(line)
        return len(text)


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("crashed", exc_info=(kind, error, trace))
