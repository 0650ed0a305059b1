// cholesky*, triangular_solve*, *fft*: matrices and transforms.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

Tensors real_and_back(Inputs x) {
  Tensor spectrum = rfft(x[0]);
  return {spectrum, irfft(spectrum, x[0].dim(-1))};
}

TriangularSolveOptions equations_of(const std::string& id, const std::string& what) {
  auto said = [&](std::string_view word) { return mentions(id, word) || mentions(what, word); };
  return {.left_side = !said("right") && !mentions(what, "x L") && !mentions(what, "x U"),
          .lower = !said("upper") && !mentions(what, "U "),
          .unit_diagonal = said("unit"),
          .transpose = said("trans") ? TransposeKind::kTranspose : TransposeKind::kNone};
}

// By name. Each factor or number of a result is one output of the case.
const Programs& decompositions() {
  static const Programs programs{
      {"solve", single([](Inputs x) { return solve(x[0], x[1]); })},
      {"inv", single([](Inputs x) { return inv(x[0]); })},
      {"det", single([](Inputs x) { return det(x[0]); })},
      {"slogdet",
       [](Inputs x) {
         SignedLog parts = slogdet(x[0]);
         return Tensors{parts.sign, parts.logabsdet};
       }},
      {"qr",
       [](Inputs x) {
         Qr factors = qr(x[0]);
         return Tensors{factors.q, factors.r};
       }},
      {"eigh",
       [](Inputs x) {
         Eigh pairs = eigh(x[0]);
         return Tensors{pairs.eigenvalues, pairs.eigenvectors};
       }},
      {"trace", single([](Inputs x) { return trace(x[0]); })},
      {"outer", single([](Inputs x) { return outer(x[0], x[1]); })},
  };
  return programs;
}

}  // namespace

std::optional<Program> linear_algebra_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  std::size_t results = test.at("outputs").size();
  if (id.starts_with("cholesky")) return single([](Inputs x) { return cholesky(x[0]); });
  if (id.starts_with("triangular_solve"))
    return single([options = equations_of(id, what)](Inputs x) {
      return triangular_solve(x[0], x[1], options);
    });
  if (id == "rfft_irfft") return real_and_back;
  if (auto found = find_program(decompositions(), id)) return found;
  if (id.starts_with("matrix_power"))
    return single([n = integer_behind(id + " " + what, "power", 2)](Inputs x) {
      return matrix_power(x[0], n);
    });
  if (results != 1) return std::nullopt;
  if (id.starts_with("fft2") || id.starts_with("fftn"))
    return single([](Inputs x) { return fftn(x[0]); });
  if (id.starts_with("rfft2") || id.starts_with("rfftn"))
    return single([](Inputs x) { return rfftn(x[0]); });
  if (id.starts_with("ifft")) return single([](Inputs x) { return ifft(x[0]); });
  if (id.starts_with("rfft")) return single([](Inputs x) { return rfft(x[0]); });
  if (id.starts_with("fft")) return single([](Inputs x) { return fft(x[0]); });
  return std::nullopt;
}

}  // namespace meshard::conformance
