// Matrix products, decompositions and Fourier transforms.
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

CallFunction transform(Tensor (*op)(In, std::optional<std::int64_t>, std::int64_t)) {
  return one_result([op](Operands x, const Attributes& at) {
    return op(x[0], at.maybe_integer("n"), at.integer("dimension"));
  });
}
CallFunction over_dimensions(Tensor (*op)(In, DimensionList)) {
  return one_result([op](Operands x, const Attributes& at) { return op(x[0], at.dimensions()); });
}

Tensor general_product(Operands x, const Attributes& at) {
  return dot_general(x[0], x[1],
                     {.lhs_contracting = at.list("lhs_contracting"),
                      .rhs_contracting = at.list("rhs_contracting"),
                      .lhs_batch = at.list("lhs_batch"),
                      .rhs_batch = at.list("rhs_batch")});
}

// Our decompositions read one triangle; JAX received the symmetric part.
Tensor symmetric_part(const Tensor& x) { return (x + matrix_transpose(x)) / 2; }

Tensor solved(Operands x, const Attributes& at) {
  TriangularSolveOptions options{.left_side = at.flag("left_side"),
                                 .lower = at.flag("lower"),
                                 .unit_diagonal = at.flag("unit_diagonal")};
  constexpr TransposeKind kKinds[] = {TransposeKind::kNone, TransposeKind::kTranspose,
                                      TransposeKind::kAdjoint};
  options.transpose = kKinds[at.one_of("transpose", {"none", "transpose", "adjoint"})];
  return triangular_solve(x[0], x[1], options);
}

Tensor norm_of_matrix(Operands x, const Attributes& at) {
  constexpr MatrixNorm kNorms[] = {MatrixNorm::kFrobenius, MatrixNorm::kLargestColumnSum,
                                   MatrixNorm::kSmallestColumnSum, MatrixNorm::kLargestRowSum,
                                   MatrixNorm::kSmallestRowSum};
  return matrix_norm(x[0], at.flag("keepdims"),
                     kNorms[at.one_of("norm", {"frobenius", "column_sum", "least_column_sum",
                                               "row_sum", "least_row_sum"})]);
}

const CallTable& products() {
  static const CallTable table{
      {"matmul", one_result([](Operands x, const Attributes&) { return matmul(x[0], x[1]); })},
      {"dot_general", one_result(general_product)},
      {"einsum", one_result([](Operands x, const Attributes& at) {
         return einsum(at.text("spec"), {x.begin(), x.end()});
       })},
      {"tensordot", one_result([](Operands x, const Attributes& at) {
         return tensordot(x[0], x[1], at.integer("count"));
       })},
      {"outer", of_two(outer)},
      {"vecdot", one_result([](Operands x, const Attributes& at) {
         return vecdot(x[0], x[1], at.integer("dimension"));
       })},
      {"cross", one_result([](Operands x, const Attributes& at) {
         return cross(x[0], x[1], at.integer("dimension"));
       })},
      {"trace", one_result([](Operands x, const Attributes& at) {
         return trace(x[0], at.integer("offset"));
       })},
  };
  return table;
}

const CallTable& decomposition_calls() {
  static const CallTable table{
      {"cholesky", one_result([](Operands x, const Attributes& at) {
         return cholesky(symmetric_part(x[0]), at.flag("upper"));
       })},
      {"triangular_solve", one_result(solved)},
      {"solve", of_two(solve)},
      {"inv", of_one(inv)},
      {"det", of_one(det)},
      {"slogdet",
       [](Operands x, const Attributes&) {
         auto [sign, logabsdet] = slogdet(x[0]);
         return Tensors{sign, logabsdet};
       }},
      {"eigvalsh",
       one_result([](Operands x, const Attributes&) { return eigvalsh(symmetric_part(x[0])); })},
      {"qr_r", one_result([](Operands x, const Attributes&) { return abs(qr(x[0]).r); })},
      {"matrix_power", one_result([](Operands x, const Attributes& at) {
         return matrix_power(x[0], at.integer("n"));
       })},
      {"matrix_norm", one_result(norm_of_matrix)},
  };
  return table;
}

}  // namespace

const CallTable& contraction_calls() {
  static const CallTable table = [] {
    CallTable all{{"fft", transform(fft)},
                  {"ifft", transform(ifft)},
                  {"rfft", transform(rfft)},
                  {"irfft", transform(irfft)},
                  {"hfft", transform(hfft)},
                  {"ihfft", transform(ihfft)},
                  {"fftn", over_dimensions(fftn)},
                  {"fftshift", over_dimensions(fftshift)},
                  {"ifftshift", over_dimensions(ifftshift)}};
    for (CallTable part : {products(), decomposition_calls()}) all.merge(part);
    return all;
  }();
  return table;
}

}  // namespace meshard::conformance
