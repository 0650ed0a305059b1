"""Whether only users that this process trusts can have written a file: the rule of meshard/base/file_cache.h."""

import grp
import os
import pathlib
import pwd
import stat


class Untrusted(OSError):
    """The message names the path, its owner and mode."""


def name_of(user):
    try:
        return f"user {pwd.getpwuid(user).pw_name} ({user})"
    except KeyError:
        return f"user {user}"


def has_strangers(group, owner):
    """Whether the group has members other than the owner, this user and root."""
    try:
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return True
    members |= {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    for user in (0, owner, os.geteuid()):
        try:
            members.discard(pwd.getpwuid(user).pw_name)
        except KeyError:
            pass
    return bool(members)


def unmapped_user():
    """The owner that represents users outside this user namespace; None outside of user namespaces."""
    try:
        if pathlib.Path("/proc/self/uid_map").read_text(encoding="utf-8").split() == ["0", "0", "4294967295"]:
            return None
        return int(pathlib.Path("/proc/sys/kernel/overflowuid").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def check(path):
    """Raises Untrusted unless the file or folder, and every folder above it, can be trusted."""
    if os.environ.get("MESHARD_TRUST_FILES") == "1":
        return
    reader, unmapped, installer = os.geteuid(), unmapped_user(), None
    real = pathlib.Path(os.path.realpath(path))
    chain = [place for place in (real, *real.parents) if place.exists()]
    for position, place in enumerate(chain):
        about = place.stat()

        def refuse(why):
            raise Untrusted(f"{place} is not trusted: {why}; it belongs to {name_of(about.st_uid)} and has mode "
                            f"{stat.S_IMODE(about.st_mode):04o}. Change its owner or mode, or set MESHARD_TRUST_FILES=1 "
                            "if this file system has no owners")

        is_parent = position > 0 and stat.S_ISDIR(about.st_mode)
        if about.st_uid not in (0, reader) and not (is_parent and about.st_uid == unmapped):
            if reader != 0:
                refuse("another user owns it")
            if installer is not None and installer != about.st_uid:
                refuse(f"its owner differs from {name_of(installer)}, who owns files in it")
            installer = about.st_uid
        if is_parent and about.st_mode & stat.S_ISVTX:
            continue
        if about.st_mode & stat.S_IWOTH:
            refuse("every user can write it")
        if about.st_mode & stat.S_IWGRP and has_strangers(about.st_gid, about.st_uid):
            refuse(f"the members of group {about.st_gid} can write it")
