"""docs/http-api.md lists the paths that the service has and the errors that it registers; the walk names real files."""

from __future__ import annotations

import json
import re

from kcoord.control.openapi.page import document
from kcoord.protocol.errors import Error
from tests.docs.pages import PAGES, ROOT

METHODS = ("get", "post", "put", "patch", "delete")
CONTRACT = PAGES["http-api"].read_text(encoding="utf-8")


def test_the_contract_lists_every_path_and_no_other() -> None:
    paths = json.loads(document())["paths"]
    served = {f"{name.upper()} {path}" for path, item in paths.items() for name in item if name in METHODS}
    written = {f"{name} {path}" for name, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]+)", CONTRACT)}
    assert written == served


def test_the_contract_lists_every_error_with_code_status_and_action() -> None:
    rows = re.findall(r"^\| ([A-Z_]+) \| (-?\d+) \| (\d{3}).*? \| (\w+)", CONTRACT, re.MULTILINE)
    registered = {
        (error.name, str(error.code), str(error.status), error.value.action.value)
        for error in Error
        if error is not Error.NONE
    }
    assert set(rows) == registered
    assert len(rows) == len(registered)


def test_the_walk_through_the_files_names_files_that_exist() -> None:
    text = PAGES["architecture"].read_text(encoding="utf-8")
    walk = text[text.index("## 9. ") :]
    short = dict(re.findall(r"`([A-Z])` is `([a-z/]+)`", walk))
    assert set(short) == {"G", "C", "O"}
    missing, folder = [], ROOT
    named = re.findall(r"`((?:[A-Z]|kcoord)/[\w/]*(?:\.\w+)?|\w+\.(?:py|sql))`", walk)
    assert len(named) > 40
    for name in named:
        first, _, rest = name.partition("/")
        path = ROOT / short.get(first, f"{first}/") / rest if rest else folder / name
        folder = path.parent if rest else folder
        if not path.exists():
            missing.append(name)
    assert missing == []
