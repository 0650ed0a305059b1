#include "meshard/ops/triangular_solve.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/by_lapack.h"
#include "meshard/ops/internal/composition.h"
#include "meshard/ops/internal/matrix_operand.h"

namespace meshard {
using namespace internal;
namespace {

void infer_triangular_solve(const OpCall& call, ResultTypes& results) {
  const TensorType &a = call.operand(0), &b = call.operand(1);
  bool left = call.as<TriangularSolveOptions>().left_side;
  check_matrix(call, a, true);
  if (a.dtype != b.dtype) call.fail("operand dtypes differ: ", a, " and ", b);
  if (a.rank() != b.rank()) call.fail("operand ranks differ: ", a, " and ", b);
  for (int d = 0; d < a.rank() - 2; ++d)
    if (a.shape[d] != b.shape[d])
      call.fail("dimension ", d, " of ", a, " = ", a.shape[d], ", of ", b, " = ", b.shape[d]);
  std::int64_t rows = b.shape[left ? -2 : -1];
  if (a.shape[-1] != rows)
    call.fail("matrices of size ", a.shape[-1], " (", a, ") do not match b with ", rows,
              left ? " rows (" : " columns (", b, ")");
  results.push_back(b);
}

ShardingRule triangular_solve_rule(const OpCall& call) {
  const Shape &a = call.operand(0).shape, &b = call.operand(1).shape;
  bool left = call.as<TriangularSolveOptions>().left_side;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in_a, in_b;
  for (int d = 0; d < a.rank() - 2; ++d) in_a.push_back(builder.factor(a[d]));
  in_b = in_a;
  int solved = builder.factor(a[-1], FactorKind::kNeedReplication);
  int other = builder.factor(a[-1], FactorKind::kNeedReplication);
  int many = builder.factor(b[left ? -1 : -2]);
  in_a.push_back(solved);
  in_a.push_back(other);
  in_b.push_back(left ? solved : many);
  in_b.push_back(left ? many : solved);
  return builder.operand(one_factor_each(in_a))
      .operand(one_factor_each(in_b))
      .result(one_factor_each(in_b))
      .build();
}

void emit_triangular_solve(const OpCall& call, OpEmission& out) {
  constexpr std::string_view kNames[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  const auto& options = call.as<TriangularSolveOptions>();
  // Inside regions over some of the axes, the partitioner splits the op, but not a call.
  if (out.quirks.has(Quirk::kLapackCalls) && !out.partitioned && call.result().shape.size() > 0)
    return emit_composition(call, out, [&](std::span<const Tensor> x) {
      return std::vector<Tensor>{triangular_solve_by_lapack(x[0], x[1], options)};
    });
  out.op("stablehlo.triangular_solve")
      .boolean("left_side", options.left_side)
      .boolean("lower", options.lower)
      .boolean("unit_diagonal", options.unit_diagonal)
      .enumeration("transpose_a", "transpose", kNames[static_cast<int>(options.transpose)])
      .done();
}

// With M = op(a): dx = inv(M) (db - dM x) on the left side, (db - x dM) inv(M) on the right.
void triangular_solve_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& options = call.as<TriangularSolveOptions>();
  const Tensor &a = call.operands[0], &x = call.results[0];
  TriangularSolveOptions transposing = options;
  transposing.transpose =
      options.transpose == TransposeKind::kNone ? TransposeKind::kTranspose : TransposeKind::kNone;
  bool is_adjoint = options.transpose == TransposeKind::kAdjoint;
  Tensor b_cotangent =
      triangular_solve(is_adjoint ? conjugated(a) : a, call.cotangents[0], transposing);
  if (call.needs(1)) out[1] = b_cotangent;
  if (!call.needs(0)) return;
  Tensor m = negative(options.left_side ? matmul(b_cotangent, transposed(x))
                                        : matmul(transposed(x), b_cotangent));
  if (options.transpose != TransposeKind::kNone) m = transposed(m);
  if (is_adjoint) m = conjugated(m);
  std::int64_t beside = options.unit_diagonal ? 1 : 0;
  out[0] = options.lower ? tril(m, -beside) : triu(m, beside);
}

}  // namespace

extern constinit const OpDef triangular_solve_op = {
    .name = "triangular_solve",
    .operands = "a, b",
    .example = "triangular_solve(eye(2), x)",
    .infer = infer_triangular_solve,
    .sharding_rule = triangular_solve_rule,
    .emit = emit_triangular_solve,
    .read = {.mnemonic = "stablehlo.triangular_solve",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(TriangularSolveOptions{
                       .left_side = text.attribute({"left_side"}) != "false"});
                 }},
    .vjp = triangular_solve_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<TriangularSolveOptions>,
    .traits = {.runs_on_shards = every_call},
};

Tensor triangular_solve(In a, In b, TriangularSolveOptions options) {
  SourceScope line(a.where);
  DType dtype = element_wise::common_dtype(triangular_solve_op, a, b);
  Tensor matrix = for_factors(element_wise::to_tensor(a, dtype));
  Tensor side = for_factors(element_wise::to_tensor(b, dtype));
  Tensor solved = record(triangular_solve_op, make_attributes(options), {&matrix, &side}, a.where);
  return from_factors(solved, dtype);
}

}  // namespace meshard
