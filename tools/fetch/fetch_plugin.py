#!/usr/bin/env python3
"""Fetches the CPU plugin that ./dev uses: a wheel named in third_party/plugins.lock and verified by hash.

usage: fetch_plugin.py [NAME] [--print-path]

NAME is cpu, the default plugin, or another CPU plugin of the lock file. It is unpacked to CACHE/plugins/NAME-VERSION/,
where CACHE is $MESHARD_CACHE, $XDG_CACHE_HOME/meshard or ~/.cache/meshard. An existing plugin is verified against
the lock file.
  MESHARD_PLUGIN=/path/to.so    use this plugin instead of the default one; nothing is fetched
  MESHARD_WHEEL_DIR=/folder     use the wheel from this folder; no network
"""

import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetch_targets as ft  # noqa: E402
import locked_wheel as lw  # noqa: E402


def main():
    only_path = "--print-path" in sys.argv[1:]
    names = [word for word in sys.argv[1:] if word != "--print-path"] or ["cpu"]
    if len(names) != 1 or names[0] not in ft.PLATFORMS or ft.PLATFORMS[names[0]][0] != ft.PLATFORMS["cpu"][0]:
        print(__doc__)
        return 2
    own = os.environ.get("MESHARD_PLUGIN")
    if own and names == ["cpu"]:
        if not pathlib.Path(own).is_file():
            raise lw.FetchError(f"MESHARD_PLUGIN={own}: no such file")
        print(own if only_path else f"plugin: {own} (MESHARD_PLUGIN), nothing fetched")
        return 0
    lock = lw.read_lock(lw.lock_path("plugins.lock"))
    path = ft.plugin_path(names[0], lock)
    if only_path:
        print(path)
        return 0
    with lw.locked(lw.cache_root() / "fetch.lock"):
        missing = ft.missing_of(names[0], lock)
        if not missing:
            print(f"plugin: {path} (hash checked)")
            return 0
        if path.is_file():
            print(f"plugin: {path.parent} does not have the locked hashes; fetching it again", flush=True)
        ft.fetch(names[0], missing, lock)
    print(f"plugin: {path}\nlicense: {missing[0].license}")
    return 0


if __name__ == "__main__":
    lw.run(main)
