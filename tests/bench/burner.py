"""Another program that uses the CPU: `python -m tests.bench.burner CORES SECONDS`.

What it does to others is the kernel's scheduling alone: no server can do anything about it.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time

PERIOD_SECONDS = 0.05


def burn(share: float, seconds: float) -> None:
    """Use `share` of a core for `seconds`, in turns with rest."""
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        until, used = now + PERIOD_SECONDS, time.process_time() + share * PERIOD_SECONDS
        while time.process_time() < used and time.perf_counter() < until:
            pass
        time.sleep(max(0.0, until - time.perf_counter()))


def main() -> int:
    """Burn with as many processes as it needs cores."""
    cores, seconds = float(sys.argv[1]), float(sys.argv[2])
    count = max(1, math.ceil(cores))
    processes = [multiprocessing.Process(target=burn, args=(cores / count, seconds)) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
