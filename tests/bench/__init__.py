"""Measurements: `python -m tests.bench`. Figures are ratios taken in one run, because machines differ and are shared."""
