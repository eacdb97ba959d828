"""Which way commits took, by the counter that operators see."""

from __future__ import annotations

from kcoord import metrics


def ways() -> dict[str, float]:
    """How many commits took which way so far."""
    return {
        sample.labels["way"]: sample.value
        for metric in metrics.COMMITS.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
