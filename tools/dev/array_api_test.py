"""docs/concepts/array-api.md lists every function of the array API standard 2024.12, and all of our names in it exist."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The functions of the standard, version 2024.12, by section.
STANDARD = {
    "Creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril "
                "triu zeros zeros_like",
    "Data types": "astype can_cast finfo iinfo isdtype result_type",
    "Element-wise": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
                    "bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 "
                    "floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10 "
                    "log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply "
                    "negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh "
                    "sqrt square subtract tan tanh trunc",
    "Indexing": "take take_along_axis",
    "Linear algebra": "matmul matrix_transpose tensordot vecdot",
    "Manipulation": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll "
                    "squeeze stack tile unstack",
    "Searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "Sets": "unique_all unique_counts unique_inverse unique_values",
    "Sorting": "argsort sort",
    "Statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "Tests and differences": "all any diff",
    "Extension linalg": "cholesky cross det diagonal eigh eigvalsh inv matrix_norm matrix_power matrix_rank outer pinv "
                        "qr slogdet solve svd svdvals trace vector_norm",
    "Extension fft": "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn",
}
# Headers with declarations outside the reference: dtypes, array creation, and a helper of a
# primitive.
HEADERS = ["meshard/array/dtype/dtype.h", "meshard/graph/leaf.h", "meshard/ops/reshape.h"]


def rows():
    """(section, functions of the standard, our names, remark) of each row of the page's tables."""
    section, found = "", []
    for line in (ROOT / "docs/concepts/array-api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if len(cells) != 3 or cells[0].startswith("---") or cells[0] == "standard":
            continue
        functions = re.findall(r"`(\w+)`", cells[0])
        ours = functions if cells[1] == "the same" else re.findall(r"`(\w+)`", cells[1])
        found.append((section, functions, ours, cells[2]))
    return found


def declared():
    """The names that are declared."""
    names = {page.stem for page in (ROOT / "docs/reference").glob("*.md")}
    texts = [page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md")]
    texts += [(ROOT / header).read_text(encoding="utf-8") for header in HEADERS]
    texts += [header.read_text(encoding="utf-8") for header in sorted((ROOT / "meshard/ops").glob("*.h"))]
    for text in texts:
        names |= set(re.findall(r"^(?:inline |constexpr |template <.*> )*[\w:<>,& ]+?\b(\w+)\(", text, re.M))
    return names


class ArrayApi(unittest.TestCase):
    def test_every_function_has_its_line(self):
        for section, functions in STANDARD.items():
            listed = [name for where, names, _, _ in rows() if where == section for name in names]
            self.assertEqual(sorted(listed), sorted(functions.split()), section)

    def test_every_name_of_ours_exists(self):
        known = declared()
        self.assertIn("matmul", known)
        self.assertNotIn("matmull", known)
        for section, functions, ours, _ in rows():
            for name in ours:
                self.assertIn(name, known, f"{section}: {functions}")

    def test_what_we_do_not_have_has_a_reason(self):
        for section, functions, ours, remark in rows():
            self.assertTrue(ours or len(remark) > 5, f"{section}: {functions} neither has a name nor a reason")

    def test_a_function_that_came_since_is_not_missing(self):
        known = declared()
        for section, functions, ours, remark in rows():
            if not ours and not remark.startswith("not there yet"):
                for name in functions:
                    self.assertNotIn(name, known, f"{section}: {name} exists, the page says that it does not")


if __name__ == "__main__":
    unittest.main()
