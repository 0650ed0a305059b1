#!/usr/bin/env python3
"""Fetches the handwritten digits of the demo: 1,797 images of 8x8 pixels, from scikit-learn.

usage: fetch_digits.py [--print-path]

Extracts sklearn/datasets/data/digits.csv.gz from the wheel in third_party/datasets.lock, which is verified by hash
(nothing is installed), and writes CACHE/data/digits.csv: 64 pixels of 0..16 and the digit on each line. CACHE is
$MESHARD_CACHE, $XDG_CACHE_HOME/meshard or ~/.cache/meshard.
  MESHARD_WHEEL_DIR=/folder     use the wheel from this folder; no network
"""

import gzip
import hashlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import locked_wheel as lw  # noqa: E402

NAME = "scikit-learn"
MEMBER = "sklearn/datasets/data/digits.csv.gz"
CSV_SHA256 = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"  # of the uncompressed text
LICENSE = ("UCI Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, 1998), CC BY 4.0; "
           "packaged by scikit-learn, BSD-3-Clause")


def main():
    if sys.argv[1:] not in ([], ["--print-path"]):
        print(__doc__)
        return 2
    path = lw.cache_root() / "data" / "digits.csv"
    if sys.argv[1:]:
        print(path)
        return 0
    entry = lw.read_lock(lw.ROOT / "third_party" / "datasets.lock")[NAME]
    with lw.locked(lw.cache_root() / "fetch.lock"):
        if path.is_file() and lw.sha256_of(path) == CSV_SHA256:
            print(f"digits: {path} (hash checked)")
            return 0
        print(f"digits: fetching {NAME} {entry.version} for one file of 57 KB", flush=True)
        with lw.workspace() as folder:
            lw.unpack(lw.download(entry, folder), MEMBER, entry.members[MEMBER], path, gzip.decompress)
    if hashlib.sha256(path.read_bytes()).hexdigest() != CSV_SHA256:
        raise lw.FetchError(f"{path} does not have the expected hash {CSV_SHA256}")
    print(f"digits: {path}\nlicense: {LICENSE}")
    return 0


if __name__ == "__main__":
    lw.run(main)
