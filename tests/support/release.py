"""`make release`: build the sdist and the wheel into `dist/`, and check them. Publishes nothing.

Exit status 1 and one line for what is wrong: tree, changelog, tag, metadata, contents, or the installed wheel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

from hatchling.build import build_sdist, build_wheel

from kcoord import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
DIST = ROOT / "dist"
PACKAGES = {"assignors", "client", "protocol", "resets", "__init__.py", "py.typed"}
SECONDS = 300


class ReleaseProblem(Exception):
    """What keeps this commit from being a release, and the remedy."""


def output(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command printed. Raises ReleaseProblem if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise ReleaseProblem(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def check_tree(root: Path = ROOT, version: str = __version__) -> None:
    """A clean tree, the section of the changelog, and the tag of the commit, if it has one."""
    if changed := output("git", "status", "--porcelain", cwd=root):
        raise ReleaseProblem(f"the tree is not clean; commit or remove {', '.join(changed.split()[1::2])}")
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if [name for name, _ in headings[:2]] != ["Unreleased", version] or not headings[1][1]:
        raise ReleaseProblem(
            f"CHANGELOG.md: after `## [Unreleased]` a section `## [{version}] - YYYY-MM-DD` is expected"
        )
    tags = [tag for tag in output("git", "tag", "--points-at", "HEAD", cwd=root).split() if tag.startswith("v")]
    if tags and tags != [f"v{version}"]:
        raise ReleaseProblem(
            f"this commit has the tag {', '.join(tags)}, but its version is {version}; expected v{version}"
        )


def build() -> tuple[Path, Path]:
    """sdist and wheel, in an empty `dist/`."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    return DIST / build_sdist(str(DIST)), DIST / build_wheel(str(DIST))


def check_contents(sdist: Path, wheel: Path) -> None:
    """Names, metadata, and that the client is in both and the service in neither."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = Parser().parsestr(archive.read(f"kcoord_client-{__version__}.dist-info/METADATA").decode())
    with tarfile.open(sdist) as archive:
        root = f"kcoord_client-{__version__}/"
        sources = [name.removeprefix(root) for name in archive.getnames()]
    if (metadata["Name"], metadata["Version"]) != ("kcoord-client", __version__) or not metadata.get_payload():
        raise ReleaseProblem(f"{wheel.name}: its metadata has not name, version {__version__} and a description")
    for path, found in ((wheel, names), (sdist, sources)):
        inside = {name.split("/")[1] for name in found if name.startswith("kcoord/") and name.count("/")}
        if inside != PACKAGES:
            raise ReleaseProblem(f"{path.name}: kcoord/ has {sorted(inside ^ PACKAGES)} too much or too little")


def check_installed(wheel: Path) -> None:
    """In an empty environment the wheel can be imported, and `kgroups --version` says this version."""
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=True)
        programs = Path(name, "bin")
        output(
            programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", wheel, cwd=Path(name)
        )
        output(programs / "python", "-I", "-c", "import kcoord.client, kcoord.assignors, kcoord.resets", cwd=Path(name))
        said = output(programs / "kgroups", "--version", cwd=Path(name)).strip()
    if said != f"kgroups {__version__}":
        raise ReleaseProblem(f"{wheel.name}: kgroups --version says {said!r}")


def main() -> int:
    """Do it all; returns the exit status."""
    try:
        check_tree()
        sdist, wheel = build()
        check_contents(sdist, wheel)
        check_installed(wheel)
    except ReleaseProblem as problem:
        print(f"no release: {problem}", file=sys.stderr)
        return 1
    for path in (sdist, wheel):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    print(f"kcoord {__version__} can be released; tag it v{__version__}. Nothing was published.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
