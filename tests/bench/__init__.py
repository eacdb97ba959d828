"""Measurements: `python -m tests.bench`. Figures are ratios taken in one run: machines differ and are shared."""
