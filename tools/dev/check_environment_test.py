"""check_environment.py finds a variable that the page lacks, and one that nothing reads."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_environment  # noqa: E402


class CheckEnvironment(unittest.TestCase):
    def problems(self, page, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {check_environment.PAGE: page, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_environment.check(root))

    def test_all_are_listed(self):
        self.assertEqual(self.problems("`MESHARD_A` `MESHARD_B` `MESHARD_C` `HOME` `MESHARD_PLUGIN_<TYPE>` `MESHARD_OPTION`", **{
            "meshard/a.cc": 'getenv("MESHARD_A"); ::secure_getenv(\n    "HOME");\n#define MESHARD_FIELDS x\n',
            "tools/b.py": 'os.environ.get("MESHARD_B")\nos.environ["SET_ONLY"] = "1"\n',
            "dev": 'echo "${MESHARD_C:-1}"\n',
            "CMakeLists.txt": 'option(MESHARD_OPTION "it" ON)\nset(MESHARD_INNER 1)\n'}), [])

    def test_missing_on_the_page(self):
        self.assertEqual(self.problems("# Variables\n", **{"meshard/a.cc": '\nenvironment_integer("MESHARD_A", 1, 0, 2)'}),
                         ["meshard/a.cc:2: MESHARD_A is not in docs/guides/environment.md"])

    def test_a_name_that_is_read_through_a_constant(self):
        self.assertEqual(len(self.problems("", **{"meshard/a.cc": 'constexpr auto kName = "MESHARD_A"; getenv(kName);'})), 1)
        self.assertEqual(self.problems("", **{"meshard/a_test.cc": 'setenv("MESHARD_A", "1", 1);'}), [])

    def test_nothing_reads_it(self):
        self.assertEqual(self.problems("`MESHARD_GONE`", **{"meshard/a.cc": "// MESHARD_GONE\n"}),
                         ["docs/guides/environment.md:1: nothing reads MESHARD_GONE"])

    def test_the_list_of_the_library(self):
        page = "`MESHARD_A` `MESHARD_PLUGIN_<TYPE>`\n## CMake options\n`MESHARD_OPTION`"
        files = {"CMakeLists.txt": 'option(MESHARD_OPTION "it" ON)', "meshard/a.cc": 'getenv("MESHARD_A");'}
        self.assertEqual(self.problems(page, **files, **{check_environment.LIST: 'kVariables[] = {"MESHARD_A"};'}), [])
        self.assertEqual(self.problems(page, **files, **{check_environment.LIST: 'kVariables[] = {\n"MESHARD_B"};'}),
                         ["meshard/base/environment.cc:1: kVariables lacks MESHARD_A, which is in docs/guides/environment.md",
                          "meshard/base/environment.cc:1: kVariables has MESHARD_B, which is not in docs/guides/environment.md"])


if __name__ == "__main__":
    unittest.main(verbosity=0)
