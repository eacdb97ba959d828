"""Which pictures are taken: no browser and no service."""

from __future__ import annotations

import re

from kcoord.tools.showcase.cast import cast
from tests.screenshots.__main__ import GROUPS, SEED
from tests.screenshots.shots import everything, pictures
from tests.support.processes import ROOT


def test_every_picture_has_a_name_of_its_own_and_everything_has_all_six_looks() -> None:
    parts = cast(GROUPS, SEED)
    for shots in (pictures(parts), list(everything(parts))):
        assert len({shot.name for shot in shots}) == len(shots)
    looks: dict[str, set[tuple[int, bool]]] = {}
    for shot in everything(parts):
        looks.setdefault(shot.path, set()).add((shot.width, shot.is_dark))
    assert set(map(len, looks.values())) == {6}


def test_the_pictures_of_the_documents_are_those_that_are_taken() -> None:
    taken = {f"{shot.name}.png" for shot in pictures(cast(GROUPS, SEED))}
    stored = {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
    assert stored <= taken
    used = {
        name
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        for name in re.findall(r"images/([\w-]+\.png)", page.read_text())
    }
    assert used <= stored
