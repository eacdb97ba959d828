"""Rules for the image, like hadolint's: what a Dockerfile breaks of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

PINNED = re.compile(r"\S+:\d+\.\d+\.\d+\S*|\S+@sha256:[0-9a-f]{64}")
SECRET = re.compile(r"(PASSWORD|SECRET|TOKEN|KEY)\w*=\S")
BUILD_TOOLS = re.compile(r"apt-get|apt install|apk add|build-essential|\bgcc\b|pip3? install|pip --python \S+ install")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `stage` counts from 0."""

    stage: int
    word: str
    rest: str


def parse(text: str) -> list[Instruction]:
    """The instructions in order, comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    stage, found = -1, []
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = " ".join(line.split()).partition(" ")
        if not word:
            continue
        stage += word.upper() == "FROM"
        found.append(Instruction(stage, word.upper(), rest))
    return found


def last_image(instructions: list[Instruction]) -> list[Instruction]:
    """What makes up the last image: its stage, after the stages that it is built on."""
    names = {i.rest.partition(" AS ")[2]: i.stage for i in instructions if i.word == "FROM"}
    stage = instructions[-1].stage
    found: list[Instruction] = []
    while True:
        own = [i for i in instructions if i.stage == stage]
        found = [*own, *found]
        base = own[0].rest.partition(" AS ")[0]
        if base not in names:
            return found
        stage = names[base]


def problems(text: str) -> Iterator[str]:
    """One sentence for each rule that is broken."""
    instructions = parse(text)
    final = last_image(instructions)
    yield from _bases(instructions)
    yield from _copies(instructions)
    yield from _runs(instructions, final)
    for i in instructions:
        if i.word in ("ENV", "ARG") and SECRET.search(i.rest):
            yield f"{i.word} {i.rest}: a secret stays in the image"
        if i.word == "WORKDIR" and not i.rest.startswith("/"):
            yield f"WORKDIR {i.rest}: not absolute"
    users = [i.rest for i in final if i.word == "USER"]
    if not users or not users[-1].isdigit() or users[-1] == "0":
        yield "the last USER is no number other than 0: Kubernetes checks runAsNonRoot by number"
    yield from _commands(final)


def _bases(instructions: list[Instruction]) -> Iterator[str]:
    stages: set[str] = set()
    for i in instructions:
        if i.word == "FROM":
            base, _, name = i.rest.partition(" AS ")
            if base not in stages and not PINNED.fullmatch(base):
                yield f"FROM {base}: not pinned to a full version"
            stages.add(name)


def _copies(instructions: list[Instruction]) -> Iterator[str]:
    for i in instructions:
        if i.word == "ADD":
            yield f"ADD {i.rest}: use COPY"
        if i.word == "COPY" and i.rest.split()[0] in (".", "./", "*"):
            yield f"COPY {i.rest}: name what the image needs, or it holds what nobody meant to publish"


def _runs(instructions: list[Instruction], final: list[Instruction]) -> Iterator[str]:
    for i in instructions:
        if i.word != "RUN":
            continue
        if "install" in i.rest and "pip" in i.rest.split() and "--no-cache-dir" not in i.rest and " -r" in i.rest:
            yield f"RUN {i.rest}: pip without --no-cache-dir"
        if i in final and BUILD_TOOLS.search(i.rest):
            yield f"RUN {i.rest}: installs in the final stage"


def _commands(final: list[Instruction]) -> Iterator[str]:
    for i in final:
        if i.word in ("CMD", "ENTRYPOINT", "HEALTHCHECK") and exec_form(i) is None:
            yield f"{i.word} {i.rest}: not in exec form, so a shell gets the signals"
    if not any(i.word == "HEALTHCHECK" for i in final):
        yield "no HEALTHCHECK"


def exec_form(instruction: Instruction) -> list[str] | None:
    """The arguments of CMD, ENTRYPOINT or HEALTHCHECK; None if they are for a shell."""
    found = re.search(r"\[.*\]$", instruction.rest)
    if found is None:
        return None
    try:
        arguments: list[str] = json.loads(found[0])
    except ValueError:
        return None
    return arguments
