"""What `tests.bench.pages` counts and prints."""

from __future__ import annotations

from tests.bench.pages import Measured, elements, table


def test_elements_are_counted_without_texts_and_ends() -> None:
    assert elements("<!doctype html><p>a <b>c</b><br><img src=x></p><!-- <i> -->") == 4


def test_a_page_is_a_line_and_a_database_a_column() -> None:
    small = Measured("Groups", "/groups", 12.4, 20.0, 95_400, 7_100, 1_612)
    large = Measured("Topics", "/topics", 733.0, 800.0, 55_000, 4_000, 901)
    assert table({"100 groups": [small], "10,000 groups": [large]}) == "\n".join(
        [
            "| page | 100 groups | 10,000 groups |",
            "| --- | --- | --- |",
            "| Groups | 12 ms, 95 kB (7), 1,612 |  |",
            "| Topics |  | 733 ms, 55 kB (4), 901 |",
        ]
    )
