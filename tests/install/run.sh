#!/usr/bin/env bash
# usage: run.sh BUILD_FOLDER
# Installs the library built in that folder into a temporary folder, builds the program of the tutorial "First 15 minutes in
# C++" against it with find_package(meshard), runs it, and checks the run-time dependencies of the program and the library.
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[[ -w $build ]] || { echo "cmake --install writes into $build, which belongs to another user"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/user"

quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; echo "failed: $*"; exit 1; }; }

quietly cmake --install "$build" --prefix "$folder/prefix" --component meshard
# The tutorial contains both files of a user's project; they are extracted from it.
page=$root/docs/tutorials/first-steps-cpp.md
python3 "$root/tools/dev/doc_examples.py" --program "$page" >"$folder/user/main.cc"
python3 "$root/tools/dev/doc_examples.py" --cmake "$page" >"$folder/user/CMakeLists.txt"
lines=$(wc -l <"$folder/user/main.cc")
[[ $lines -le 30 ]] || { echo "the tutorial's program has $lines lines, more than 30"; exit 1; }

leaked=$(cd "$folder/prefix/include/meshard" && find . -name '*_testutil.h' -o -name '*_test*' -o -path '*/internal/*')
[[ -z $leaked ]] || { echo "installed, but not public: $leaked"; exit 1; }
if grep -rhoE '^ *# *include *[<"][^">]+' "$folder/prefix/include" |
   grep -E 'nlohmann|CLI/|xxhash|google/protobuf|zlib|gtest|gmock|pjrt_c_api'; then
  echo "a public header includes the above"; exit 1
fi
missing=$(cd "$folder/prefix/include" && grep -rhoE '^ *# *include *"meshard/[^"]+' meshard | sed 's/.*"//' | sort -u |
          while read -r header; do [[ -f $header ]] || echo "$header"; done)
[[ -z $missing ]] || { echo "included by installed headers, but not installed: $missing"; exit 1; }

quietly cmake -S "$folder/user" -B "$folder/user/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
quietly cmake --build "$folder/user/build"
program=$(find "$folder/user/build" -maxdepth 1 -type f -executable)
echo "== $(basename "$program")"
"$program" | tee "$folder/output"
losses=$(sed -n 's/^step .*: loss //p' "$folder/output")
[[ $(echo "$losses" | wc -l) -ge 3 && $losses == "$(echo "$losses" | sort -gr)" ]] ||
  { echo "the loss does not go down"; exit 1; }

# The program that compile_for() starts is installed with the library. It prints its usage and exits with 2.
compile=$folder/prefix/libexec/meshard/meshard-compile
"$compile" >/dev/null 2>"$folder/log" && { echo "meshard-compile accepted no arguments"; exit 1; }
grep -q 'usage: meshard-compile' "$folder/log" || { cat "$folder/log"; exit 1; }

# Only the C and C++ run time; libdl and libpthread are part of libc. The plugin is opened by name at run time.
for file in "$program" "$compile" $(find "$folder/prefix" -name 'libmeshard.so*' -type f); do
  needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  for library in $needed; do
    case $library in
      libstdc++.so.*|libm.so.*|libgcc_s.so.*|libc.so.*|libdl.so.*|libpthread.so.*|ld-linux*) ;;
      libmeshard.so.*) [[ $file == "$program" ]] || { echo "$file needs $library"; exit 1; } ;;
      *) echo "$(basename "$file") needs $library"; exit 1 ;;
    esac
  done
  echo "$(basename "$file") needs $(echo $needed)"
done
echo "1 passed, 0 failed"
