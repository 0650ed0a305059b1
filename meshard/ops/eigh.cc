#include "meshard/ops/eigh.h"

#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

void infer_eigh(const OpCall& call, ResultTypes& results) {
  const TensorType& x = call.operand(0);
  check_matrix(call, x, true);
  if (is_complex(x.dtype)) call.fail("takes f32 and f64, not ", x);
  if (x.shape[-1] == 0) call.fail("takes non-empty matrices, not ", x);
  Dimensions sizes(x.shape.begin(), x.shape.end() - 1);
  results.push_back({x.dtype, Shape(std::move(sizes))});
  results.push_back(x);
}

// The partitioner cannot split the custom call: every dimension is needed whole.
ShardingRule eigh_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  auto factors = factors_with_whole_last(builder, call.operand(0).shape, call.operand(0).rank());
  InlineVector<int, 6> values = factors;
  values.pop_back();
  return builder.operand(one_factor_each(factors))
      .result(one_factor_each(values))
      .result(one_factor_each(factors))
      .build();
}

// XLA expands the custom call `Eigh`. Its configuration: read the lower triangle, sort the
// eigenvalues, the maximum number of sweeps, and the tolerance for off-diagonal elements.
void emit_eigh(const OpCall& call, OpEmission& out) {
  bool wide = call.operand(0).dtype == DType::f64;
  stablehlo::Value vectors = out.results[1].value, values = out.results[0].value;
  out.writer
      .custom_call("Eigh", {{vectors, call.result(1)}, {values, call.result(0)}}, out.operands,
                   out.location)
      .string("backend_config", wide ? "1,1,100,1e-13" : "1,1,100,1e-6")
      .done();
}

// The derivative for symmetric matrices: v (diag(dw) + f * (v^T dv)) v^T with f[i, j] = 1 / (w[j] -
// w[i]) off the diagonal (M. Giles, Collected matrix derivative results, 2008, section 3.1).
void eigh_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &w = call.results[0], &v = call.results[1];
  const Tensor &dw = call.cotangents[0], &dv = call.cotangents[1];
  const Shape& shape = call.operands[0].shape();
  Shape matrix{shape[-1], shape[-1]};
  Tensor diagonal = equal(iota(DType::i32, matrix, 0), iota(DType::i32, matrix, 1));
  Tensor inner;
  if (dw.defined()) inner = where(diagonal, expand_dims(dw, -1), 0);
  if (dv.defined()) {
    Tensor gaps = expand_dims(w, -2) - expand_dims(w, -1);
    Tensor turned = where(diagonal, 0, matmul(transposed(v), dv) / where(diagonal, 1, gaps));
    inner = inner.defined() ? inner + turned : turned;
  }
  if (!inner.defined()) return;
  Tensor whole = matmul(matmul(v, inner), transposed(v));
  Tensor half = element_wise::literal(0.5, whole);
  // The op reads only the operand's lower triangle, which therefore receives the cotangents of
  // both.
  Tensor both = (whole + transposed(whole)) * half;
  out[0] = tril(both) + tril(both, -1);
}

std::vector<OpSample> eigh_samples(SampleSource& source) {
  auto values = [](std::span<const Tensor> x) { return eigvalsh(x[0]); };
  // The sign of an eigenvector is arbitrary, so the samples use squares.
  auto squares = [](std::span<const Tensor> x) {
    auto [w, v] = eigh(x[0]);
    return matmul(v * v, expand_dims(w * w, -1));
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"values", {source.uniform(f64, {4, 4})}, values},
      {"stack, values", {source.uniform(f64, {2, 3, 3})}, values},
      {"vectors", {source.uniform(f64, {4, 4})}, squares},
      {"f32", {source.uniform(f32, {4, 4, 4})}, squares},
  };
}

}  // namespace

extern constinit const OpDef eigh_op = {
    .name = "eigh",
    .operands = "x",
    .doc = "The eigenvalues and eigenvectors of symmetric matrices.",
    .example = "eigh(matmul(x, permute_dims(x))).eigenvalues",
    .infer = infer_eigh,
    .sharding_rule = eigh_rule,
    .emit = emit_eigh,
    .vjp = eigh_vjp,
    .batch = batch_unchanged,
    .samples = eigh_samples,
};

Eigh eigh(In x) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(eigh_op, x);
  DType dtype = operand.dtype();
  if (is_complex(dtype)) throw_invalid(where, "[eigh] takes real numbers, not ", operand.type());
  operand = astype(operand, dtype == DType::f64 ? dtype : kDefaultFloat);
  if (operand.shape().rank() < 2 || operand.shape()[-1] != operand.shape()[-2])
    throw_invalid(where, "[eigh] takes square matrices in the last two dimensions, not ",
                  operand.type());
  Tensor symmetric = (operand + transposed(operand)) * element_wise::literal(0.5, operand);
  Tensor values = record(eigh_op, nullptr, {&symmetric}, where);
  Tensor vectors(Value(values.value().node(), 1));
  if (!is_floating(dtype)) return {values, vectors};
  return {astype(values, dtype), astype(vectors, dtype)};
}

Tensor eigvalsh(In x) { return eigh(x).eigenvalues; }

}  // namespace meshard
