"""`python -m kcoord.tools.demo`: exit status 0 if counts are equal and --spark reconciles without a finding; else 1."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from kcoord.client import KcoordError
from kcoord.tools.demo.corpus import standard_library
from kcoord.tools.demo.run import Demo, Narrator, Options, prepare_topic
from kcoord.tools.demo.service import DemoProblem, reach


def parse(arguments: list[str]) -> Options:
    """The command line options."""
    parser = argparse.ArgumentParser(
        prog="python -m kcoord.tools.demo", description="A group of workers counts words; one worker is killed."
    )
    parser.add_argument("--topic", default="stdlib", help="name of the topic (default: %(default)s)")
    parser.add_argument("--partitions", type=_positive, default=24, help="of the topic (default: %(default)s)")
    parser.add_argument(
        "--lines", type=_positive, default=150_000, help="approximate number of lines to read (default: %(default)s)"
    )
    parser.add_argument("--workers", type=_positive, default=3, help="processes (default: %(default)s)")
    parser.add_argument(
        "--pace", type=_positive, default=4_000, help="lines per second and worker (default: %(default)s)"
    )
    parser.add_argument(
        "--group-protocol",
        choices=("classic", "consumer"),
        default="classic",
        help="who assigns: a member (classic) or the service (consumer, KIP-848) (default: %(default)s)",
    )
    parser.add_argument("--timeout", type=_positive, default=180, help="time limit in seconds (default: %(default)s)")
    parser.add_argument("--spark", action="store_true", help="archive and reconcile the commits at the end")
    given = parser.parse_args(arguments)
    return Options(
        given.topic,
        given.partitions,
        given.lines,
        given.workers,
        given.pace,
        1.0,
        given.timeout,
        given.group_protocol,
        given.spark,
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def main(arguments: list[str]) -> int:
    """Run the demo; returns the exit status."""
    options = parse(arguments)
    narrator = Narrator()
    try:
        with (
            reach(os.environ, narrator.say) as service,
            tempfile.TemporaryDirectory(prefix="kcoord-demo-") as directory,
        ):
            partitions = prepare_topic(service, options.topic, options.partitions)
            corpus = standard_library(partitions, options.max_lines)
            return 0 if Demo(service, options, corpus, Path(directory), narrator).run() else 1
    except (DemoProblem, KcoordError, ValueError) as problem:
        sys.stderr.write(f"kcoord demo: {problem}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _leave(number: int, frame: FrameType | None) -> None:
    """Exit through the `with` blocks, which stop what was started."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)
    sys.exit(main(sys.argv[1:]))
