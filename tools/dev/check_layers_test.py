"""Tests each rule of check_layers.py on a small tree that violates it."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers  # noqa: E402

CMAKE = """# a comment: meshard_folder(nothing)
meshard_folder(base)
meshard_folder(mesh DEPENDS base)
meshard_folder(array DEPENDS base)
meshard_folder(graph
               DEPENDS mesh array)
meshard_folder(pjrt DEPENDS base)
meshard_folder(runtime DEPENDS graph pjrt)
"""


class CheckLayers(unittest.TestCase):
    def problems(self, files, cmake=CMAKE):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {"meshard/CMakeLists.txt": cmake, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.check(root)

    def one(self, files, *parts, cmake=CMAKE):
        found = self.problems(files, cmake)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_reads_depends(self):
        self.assertEqual(check_layers.read_depends(CMAKE)["graph"], ["mesh", "array"])
        self.assertNotIn("nothing", check_layers.read_depends(CMAKE))

    def test_allowed_directions(self):
        self.assertEqual(self.problems({
            "meshard/graph/node.h": '#include "meshard/graph/value.h"\n#include <vector>\n'
                                    '#include "meshard/base/error.h"\n',  # through mesh
            "meshard/runtime/run.cc": '#include "meshard/pjrt/client.h"\n#include "xxhash.h"\n',
            "meshard/meshard.h": '#include "meshard/runtime/run.h"\n',
            "meshard/graph/node_test.cc": '#include "tests/support/random.h"\n',
            "examples/a.cc": "#include <meshard/core.h>\n#include <meshard/meshard.h>\n",
            "tests/e2e/a_test.cc": '#include "meshard/pjrt/client.h"\n',
            "tools/a.cc": '#include "meshard/graph/node.h"\n'}), [])

    def test_against_the_direction(self):
        self.one({"meshard/base/a.h": "\n\n#include \"meshard/graph/node.h\"\n"},
                 "meshard/base/a.h:3:", "base may not include graph")

    def test_beside(self):
        self.one({"meshard/mesh/a.cc": '#  include "meshard/array/b.h"'}, "mesh may not include array")

    def test_tests_obey_the_direction(self):
        self.one({"meshard/mesh/a_test.cc": '#include "meshard/graph/b.h"'}, "may not include graph")

    def test_pure_folder_includes_pjrt(self):
        self.one({"meshard/graph/a.cc": '#include "meshard/pjrt/client.h"'}, "graph may not include pjrt")

    def test_pure_folder_reaches_pjrt(self):
        self.one({}, "graph is pure", cmake=CMAKE.replace("DEPENDS mesh array", "DEPENDS mesh pjrt"))

    def test_pjrt_stays_usable_alone(self):
        self.one({}, "pjrt depends on base and quirks only", cmake=CMAKE.replace("pjrt DEPENDS base", "pjrt DEPENDS mesh"))

    def test_cycle(self):
        self.one({}, "depend on each other", "mesh", cmake=CMAKE.replace("mesh DEPENDS base", "mesh DEPENDS graph"))

    def test_unknown_dependency(self):
        self.one({}, "which is not a folder", cmake=CMAKE.replace("mesh DEPENDS base", "mesh DEPENDS bse"))

    def test_unknown_folder(self):
        self.one({"meshard/mesh/a.cc": '#include "meshard/mash/b.h"'}, "meshard/mash is not a folder")

    def test_unlisted_folder(self):
        self.one({"meshard/extra/a.cc": "int x;"}, "no meshard_folder(extra ...)")

    def test_umbrella_header_inside_the_library(self):
        self.one({"meshard/mesh/a.cc": '#include "meshard/meshard.h"'}, "is for users")

    def test_library_includes_test_support(self):
        self.one({"meshard/mesh/a.cc": '#include "tests/support/random.h"'}, "only tests include")

    def test_internal_header_of_another_folder(self):
        self.one({"meshard/graph/a.cc": '#include "meshard/mesh/internal/b.h"'}, "internal to mesh")

    def test_example_includes_a_folder(self):
        self.one({"examples/a.cc": '\n#include "meshard/graph/node.h"\n'},
                 "examples/a.cc:2:", "an example includes <meshard/meshard.h>", "only, not meshard/graph/node.h")


if __name__ == "__main__":
    unittest.main(verbosity=0)
