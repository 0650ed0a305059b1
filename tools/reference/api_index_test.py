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


def names_of(text):
    return api_index.names_of("meshard/a/a.h", text)


def within(body):
    return f"// A title.\n#pragma once\nnamespace meshard {{\n\n{body}\n}}  // namespace meshard\n"


class Index(unittest.TestCase):
    def test_names(self):
        found = {each.name: (each.kind, each.sentence) for each in names_of(HEADER)}
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

    def test_declarations(self):
        found = {each.name: each.declarations for each in names_of(HEADER)}
        self.assertEqual(found["add"], ["Tensor add(const Tensor& a, const Tensor& b = {});"])
        self.assertEqual(found["operator+="], ["template <class T>\nrequires(std::is_integral_v<T>) Tensor& operator+=(Tensor& a, T b);"])
        self.assertEqual(found["Box"], ["class Box : public Base;"])
        self.assertEqual(found["nn::Linear"], ["struct Linear {\n  Tensor w;\n};"])
        self.assertEqual(found["kCount"], ["inline constexpr int kCount = 3;"])
        self.assertEqual(found["MESHARD_ALL"], ["#define MESHARD_ALL(...)"])

    def test_a_struct_shows_its_members_with_their_comments(self):
        [found] = names_of(within("/// Options.\nstruct Options {\n  /// How many.\n  int count = 2;\n  /// Not shown.\n"
                                  "  int twice() const { return 2 * count; }\n  std::string name = {};  ///< a name\n"
                                  "  MESHARD_FIELDS(count, name)\n};\n"))
        self.assertEqual(found.declarations, ["struct Options {\n  /// How many.\n  int count = 2;\n  std::string name = {};"
                                              "  ///< a name\n};"])

    def test_overloads_are_together(self):
        [found] = names_of(within("/// One.\nint f(int a);\nint f(float a);\n"))
        self.assertEqual(found.declarations, ["int f(int a);", "int f(float a);"])

    def test_members_and_forward_declarations_are_not_names(self):
        self.assertEqual(names_of(within("enum class Later;\ninline int Box::size() const { return 1; }\n")), [])

    def test_a_comment_may_follow(self):
        [found] = names_of(within("using Handler = std::function<void()>;  ///< Is called.\n"))
        self.assertEqual((found.sentence, found.declarations), ("Is called.", ["using Handler = std::function<void()>;"]))

    def test_a_struct_of_results_describes_its_function(self):
        found = names_of(within("/// The k largest.\nstruct TopK {\n  Tensor values;\n};\n/// @error k is 0.\nTopK top_k(In x);\n"))
        self.assertEqual([each.sentence for each in found], ["The k largest."] * 2)

    def test_first_sentences(self):
        for text, first in (("Adam (Kingma and Ba: A Method for Optimization, 2015). Decays.", "Adam (Kingma and Ba: A Method for Optimization, 2015)."),
                            ("By Chen et al. In 2023. More.", "By Chen et al. In 2023."),
                            ("In [0, 1). Next.", "In [0, 1)."), ("Of `a. B` only. C.", "Of `a. B` only."),
                            ("Two: One and two. Three", "Two: One and two."), ("No end", "No end")):
            self.assertEqual(api_index.first_sentence([f"/// {text}"]), first)

    def test_a_name_without_a_comment_is_an_error(self):
        folders = {"a": names_of(within("int f();\n"))}
        self.assertEqual(api_index.undocumented(folders), ["meshard/a/a.h:5: f has no comment: its first sentence is missing in docs/api"])

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
            self.assertIn("### `nn::Linear`\n\nA layer.\n\n```cpp\nstruct Linear {", (root / "docs/api/a.md").read_text())
            (root / "meshard/a/a.h").write_text(HEADER.replace("A layer", "A new layer"))
            self.assertIn("a.md: not what the headers say", run("--check").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=0)
