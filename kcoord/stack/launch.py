"""Run a command that ends when its parent does: `python -I -S launch.py PARENT SIGNAL UID:GID|- COMMAND…`.

Linux sends SIGNAL to the command when the supervisor is gone, even if it was killed and could not stop its children:
one that ends it whatever it does, because nobody is left who would force it.
Elsewhere no such signal exists; a command that is left over then holds the lock of the data directory, and the next
start says so. Run as a file, without site-packages: it costs some 10 ms and needs nothing but the standard library.

Source: prctl(2), PR_SET_PDEATHSIG. It is reset when credentials change, hence set after them, and survives exec.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def drop_privileges(uid: int, gid: int) -> None:
    """Become another user, permanently."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def end_with_parent(parent: int, signal_number: int) -> None:
    """Ask for `signal_number` when the parent ends; leave at once if it has ended already."""
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """Replace this process with the command."""
    parent, signal_number, user, *command = arguments
    if user != "-":
        uid, gid = user.split(":")
        drop_privileges(int(uid), int(gid))
    end_with_parent(int(parent), int(signal_number))
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
