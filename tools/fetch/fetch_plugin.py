#!/usr/bin/env python3
"""Fetches the CPU plugin: the wheel named and hashed in third_party/plugins.lock.

usage: fetch_plugin.py [--print-path]

The plugin is unpacked to CACHE/plugins/xla_cpu_pjrt-VERSION/xla_cpu_pjrt.so, where CACHE is $MESHARD_CACHE,
$XDG_CACHE_HOME/meshard or ~/.cache/meshard. A plugin already there is checked against the lock file.
  MESHARD_PLUGIN=/path/to.so    use this plugin; nothing is fetched
  MESHARD_WHEEL_DIR=/folder     take the wheel from this folder; no network
"""

import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import locked_wheel as lw  # noqa: E402

NAME = "xla-cpu-pjrt"
MEMBER = "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
LICENCE = ("the wheel's header pjrt_c_api.h is Apache-2.0 (OpenXLA); the wheel itself states no licence, "
           "so meshard fetches it for you and never redistributes it")


def plugin_path(entry):
    return lw.cache_root() / "plugins" / f"xla_cpu_pjrt-{entry.version}" / "xla_cpu_pjrt.so"


def main():
    if sys.argv[1:] not in ([], ["--print-path"]):
        print(__doc__)
        return 2
    own = os.environ.get("MESHARD_PLUGIN")
    if own:
        if not pathlib.Path(own).is_file():
            raise lw.FetchError(f"MESHARD_PLUGIN={own}: no such file")
        print(own if sys.argv[1:] else f"plugin: {own} (MESHARD_PLUGIN), nothing fetched")
        return 0
    entry = lw.read_lock(lw.lock_path("plugins.lock"))[NAME]
    path = plugin_path(entry)
    if sys.argv[1:]:
        print(path)
        return 0
    expected = entry.members[MEMBER]
    with lw.locked(lw.cache_root() / "fetch.lock"):
        if path.is_file():
            if lw.is_there(path, expected):
                print(f"plugin: {path} (hash checked)")
                return 0
            print(f"plugin: {path} does not have the locked hash; fetching it again", flush=True)
        print(f"plugin: fetching {NAME} {entry.version} (63 MB, unpacks to 259 MB)", flush=True)
        with lw.workspace() as folder:
            lw.unpack(lw.download(entry, folder), MEMBER, expected, path)
    print(f"plugin: {path}\nlicence: {LICENCE}")
    return 0


if __name__ == "__main__":
    lw.run(main)
