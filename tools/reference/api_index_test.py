"""api_index.py finds the public names of a header."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import api_index  # noqa: E402

HEADER = '''// A title.
#pragma once
#include <string>

/// Lists the fields: all of them. Not less.
#define MESHARD_ALL(...) \\
  int x;
#define MESHARD_HELPER 1

namespace meshard {

class Forward;

/// A value: a box of 1.5 sizes, e.g. of `a`. It has members.
/// @error none
class Box : public Base {
 public:
  /// Not at the level of the namespace.
  int size() const { return 1; }
};

/// The sum of both. @error they differ
Tensor add(const Tensor& a, const Tensor& b = {});
Tensor add_all(In a);

/// The same, in place.
template <class T>
requires(std::is_integral_v<T>) Tensor& operator+=(Tensor& a, T b) {
  return a;
}
/// A number.
inline constexpr int kCount = 3;
/// One or the other.
using Either = std::variant<int, float>;
/// What counts.
template <class T>
concept Countable = requires(T t) { t.count(); };
enum class Kind { kA, kB };

namespace internal {
/// Hidden.
int hidden();
}  // namespace internal

namespace nn {
/// A layer.
struct Linear {
  Tensor w;
};
}  // namespace nn
}  // namespace meshard
namespace std {
}
'''


class Index(unittest.TestCase):
    def test_names(self):
        found = {each.name: (each.kind, each.sentence) for each in api_index.names_of("meshard/a/a.h", HEADER)}
        self.assertEqual(found, {
            "MESHARD_ALL": ("macro", "Lists the fields: all of them."),
            "Box": ("type", "A value: a box of 1.5 sizes, e.g. of `a`."),
            "add": ("function", "The sum of both."),
            "add_all": ("function", "The sum of both."),
            "operator+=": ("function", "The same, in place."),
            "kCount": ("value", "A number."),
            "Either": ("type", "One or the other."),
            "Countable": ("concept", "What counts."),
            "Kind": ("type", "What counts."),
            "nn::Linear": ("type", "A layer."),
        })

    def test_check_names_what_is_stale(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("a/a.h", "a/internal/b.h", "a/a_testutil.h"):
                (root / "meshard" / name).parent.mkdir(parents=True, exist_ok=True)
                (root / "meshard" / name).write_text(HEADER)

            def run(*arguments):
                return subprocess.run([sys.executable, api_index.__file__, "--root", folder, *arguments], capture_output=True, encoding="utf-8")

            self.assertEqual(run("--check").returncode, 1)
            self.assertEqual(run().returncode, 0)
            self.assertEqual((run("--check").returncode, run("--check").stdout), (0, ""))
            self.assertIn("| `nn::Linear` | A layer. | type | `a/a.h` |", (root / "docs/api/a.md").read_text())
            (root / "meshard/a/a.h").write_text(HEADER.replace("A layer", "A new layer"))
            self.assertIn("a.md: not what the headers say", run("--check").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=0)
