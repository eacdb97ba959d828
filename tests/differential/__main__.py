"""`python -m tests.differential`: see the package. The status is 1 if an answer differs."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter


def main() -> int:
    """Play sequences, print differences and figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--kafka", default="download", help="the directory of an unpacked Kafka, or `download`")
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--steps", type=int, default=20, help="of each sequence")
    parser.add_argument("--seed", type=int, default=1, help="of the first one; the others follow")
    parser.add_argument("--scenarios", action="store_true", help="play those instead of sequences")
    parser.add_argument("--record", action="store_true", help="with --scenarios: keep what the broker answers")
    given = parser.parse_args()

    from tests.differential.rules import kind_of
    from tests.differential.scenes import record
    from tests.differential.sides import played, scenes
    from tests.support.database import ephemeral_database

    def say(text: str) -> None:
        print(text, flush=True)

    with ephemeral_database() as conninfo:
        if given.scenarios:
            compared = scenes(given.kafka, conninfo)
            for name, unequal in compared.unequal.items():
                say("\n".join([f"{name}:", *(f"  {line}" for line in unequal)]))
            if given.record:
                record(compared)
            say(f"{compared.plays} scenarios, {compared.answers} answers, {len(compared.unequal)} scenarios differ")
            return 1 if compared.unequal else 0
        report = played(given.kafka, conninfo, range(given.seed, given.seed + given.sequences), given.steps, say)
    kinds = Counter(kind_of(line) for found in report.found for line in found.differences)
    for kind, times in kinds.most_common():
        say(f"{times:5} {kind}")
    say(f"{report.sequences} sequences, {report.steps} steps, {len(report.found)} sequences differ")
    return 1 if report.found else 0


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    django.setup()
    sys.exit(main())
