"""The yardsticks themselves: the Starlette echo over HTTP, and upserts by pgbench."""

from __future__ import annotations

from tests.bench.bench import Bench, details
from tests.bench.figures import Figure


def run(bench: Bench) -> None:
    """Each beside itself: the ratio is 1, but everything else is known of them, too."""
    echo, upserts = bench.echo_found(), bench.upserts_found()
    bench.add(Figure("echo", "Starlette echo", echo.rate, "/s", "itself", echo.rate, details(echo)))
    name = "pgbench upserts, 64 clients"
    bench.add(Figure("pgbench", name, upserts.rate, "/s", "itself", upserts.rate, details(upserts)))
