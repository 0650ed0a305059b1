"""Downloads one wheel by name and hash and extracts single files; nothing is installed.

A lock file is a pip requirements file. A comment `# unpack PATH sha256:HEX` below a requirement names a
file of that wheel and the hash of its contents, so that the file in the cache can be verified again;
`# size BYTES` and `# license TEXT` describe the wheel.
"""

import contextlib
import fcntl
import glob
import hashlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile

import file_trust

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLATFORMS = ["manylinux_2_31_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64",
             "manylinux_2_12_x86_64", "manylinux2010_x86_64"]
PYTHON = "311"


class FetchError(Exception):
    """An error that the user can fix; the message says how."""


class LockEntry:
    """One requirement of a lock file: name, version, the wheel's hash, and the files to extract."""

    def __init__(self, name, version, sha256):
        self.name, self.version, self.sha256 = name, version, sha256
        self.members = {}  # path inside the wheel -> sha256 of the contents
        self.size, self.license = 0, ""

    def requirement(self):
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def read_lock(path):
    """The entries of a lock file, by name."""
    entries, last = {}, None
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        member = re.fullmatch(r"# unpack (\S+) sha256:([0-9a-f]{64})", line.strip())
        requirement = re.fullmatch(r"([\w.-]+)==(\S+) --hash=sha256:([0-9a-f]{64})", line.strip())
        about = re.fullmatch(r"# (size|license) (.+)", line.strip())
        if member and last:
            last.members[member[1]] = member[2]
        elif about and last:
            setattr(last, about[1], int(about[2]) if about[1] == "size" else about[2])
        elif requirement:
            last = LockEntry(*requirement.groups())
            entries[last.name] = last
        elif line.strip() and not line.startswith("#"):
            raise FetchError(f"{path}:{number}: not `name==version --hash=sha256:...`: {line}")
    return entries


def lock_path(name):
    """The path of a lock file: in the source tree, or in an installation, next to this file."""
    in_tree = ROOT / "third_party" / name
    return in_tree if in_tree.is_file() else pathlib.Path(__file__).resolve().parent / name


def cache_root():
    """The folder of fetched files: outside the source tree, shared by all checkouts. Same as the library's cache_folder()."""
    if os.environ.get("MESHARD_CACHE"):
        return pathlib.Path(os.environ["MESHARD_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or ""
    if os.path.isabs(base):
        return pathlib.Path(base) / "meshard"
    home = os.environ.get("HOME") or ""
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            home = ""
    if not os.path.isabs(home):
        raise FetchError("this user has no home folder: set MESHARD_CACHE to a folder")
    return pathlib.Path(home) / ".cache" / "meshard"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def locked(path):
    """Holds a file lock, so that two builds do not fetch the same files at the same time."""
    file_trust.check(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download(entry, folder):
    """The wheel of `entry`, downloaded into `folder` by pip. Both pip and this function verify its hash."""
    requirement = pathlib.Path(folder) / "requirement.txt"
    requirement.write_text(entry.requirement() + "\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
               "--no-cache-dir", "--disable-pip-version-check", "--only-binary", ":all:",
               "--python-version", PYTHON, "-r", str(requirement), "-d", str(folder)]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    offline = os.environ.get("MESHARD_WHEEL_DIR")
    if offline:
        command += ["--no-index", "--find-links", offline]
    try:
        import importlib.util
        if importlib.util.find_spec("pip") is None:
            raise FetchError("python3 has no pip: apt-get install python3-pip")
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError as error:
        source = f"MESHARD_WHEEL_DIR={offline}" if offline else "the package index that pip is configured with"
        raise FetchError(f"pip could not get {entry.name}=={entry.version} from {source}; to "
                         "use a folder that contains the wheel, set MESHARD_WHEEL_DIR") from error
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"expected one wheel of {entry.name}, found {len(wheels)}")
    found = sha256_of(wheels[0])
    if found != entry.sha256:
        raise FetchError(f"{wheels[0].name}: hash {found}, the lock file says {entry.sha256}")
    return wheels[0]


def record(path, sha256):
    """Writes the record that loading a fetched plugin checks; see meshard/pjrt/plugin_search.h."""
    about = path.stat()
    text = (f"meshard fetched 1\nsha256 {sha256}\nsize {about.st_size}\ntime {about.st_mtime_ns}\n"
            f"owner {about.st_uid}\n")
    kept = path.with_name(path.name + ".fetched")
    if kept.is_file() and kept.read_text(encoding="utf-8") == text:
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=kept.name + ".part-")
    with os.fdopen(handle, "w") as out:
        out.write(text)
    os.chmod(name, 0o644)
    os.rename(name, kept)


def is_there(path, sha256):
    """Whether the file has the locked hash. If so, records it, in case an older version did not."""
    if not path.is_file() or sha256_of(path) != sha256:
        return False
    if path.suffix == ".so":
        with contextlib.suppress(PermissionError):  # a read-only cache
            record(path, sha256)
    return True


def remove_stale(folder, pattern):
    """Removes files of a killed fetch. The caller holds the cache lock, so no other fetch is running."""
    for left in folder.glob(pattern):
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def unpack(wheel, member, sha256, target, transform=None, mode=0o644):
    """Writes one file of a wheel to `target` in one step (a temporary file, then a rename).

    @pre the lock of the cache is held
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(target.parent, glob.escape(target.name) + "*.part-*")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".part-")
    temporary = pathlib.Path(name)
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(wheel) as archive:
            digest = hashlib.sha256()
            with archive.open(member) as source:
                if transform:
                    contents = source.read()
                    digest.update(contents)
                    out.write(transform(contents))
                else:
                    while block := source.read(1 << 22):
                        digest.update(block)
                        out.write(block)
        if digest.hexdigest() != sha256:
            raise FetchError(f"{member}: hash {digest.hexdigest()}, the lock file says {sha256}")
        temporary.chmod(mode)
        if target.suffix == ".so":
            target.with_name(target.name + ".fetched").unlink(missing_ok=True)  # the record of the replaced file
        temporary.rename(target)
        if target.suffix == ".so":
            record(target, sha256)
    except KeyError as error:
        raise FetchError(f"{wheel.name} does not contain {member}") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def workspace():
    """A temporary folder inside the cache, on the disk of the result.

    @pre the lock of the cache is held
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    remove_stale(root, "fetch-*/")
    folder = tempfile.mkdtemp(dir=root, prefix="fetch-")
    try:
        yield pathlib.Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(main):
    """Runs a fetch program's main and turns a FetchError into a message and exit status 1."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, a failing pip would appear successful
    try:
        sys.exit(main())
    except (FetchError, OSError) as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(1)
