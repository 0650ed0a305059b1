// Tested in tests/e2e/linalg_test.cc.
// Primitives of linalg.h: functions of square matrices, and the pseudo-inverse.
#include <cmath>
#include <utility>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/internal/composition.h"
#include "meshard/ops/internal/factored_solve.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "meshard/ops/linalg.h"

namespace meshard {
using namespace internal;
namespace {

using Values = std::vector<Tensor>;

Tensor column_norm(const Tensor& x) { return max(sum(abs(x), -2), -1); }

// The derivative of a function f of matrices in the direction e is the upper right block of
// f([[a, e], [0, a]]) (N. J. Higham, Functions of Matrices, 2008, theorem 3.6), and its adjoint is
// that at adjoint(a).
void function_vjp(const VjpCall& call, std::span<Tensor> out) {
  Tensor a = adjoint(call.operands[0]), g = conjugated(call.cotangents[0]);
  std::int64_t n = a.dim(-1);
  Tensor both = concat({concat({a, g}, -1), concat({zeros_like(a), a}, -1)}, -2);
  Tensor made = record(call.node.op(), nullptr, {&both}, call.node.where());
  out[0] = conjugated(slice_along(slice_along(made, -2, 0, n), -1, n, 2 * n));
}

void infer_function(const OpCall& call, ResultTypes& results) {
  check_matrix(call, call.operand(0), true);
  results.push_back(call.operand(0));
}

void infer_complex_function(const OpCall& call, ResultTypes& results) {
  infer_function(call, results);
  if (!is_complex(call.operand(0).dtype))
    call.fail("takes complex matrices, not ", call.operand(0));
}

// ---- The exponential.

// The polynomials of the rational approximation: u has the odd powers, v the even ones.
std::pair<Tensor, Tensor> approximants(const Tensor& x, std::span<const double> b) {
  Tensor one = unit_matrices(x.type()), square = matmul(x, x), power = one;
  Tensor u, v;
  for (std::size_t i = 0; i < b.size(); i += 2) {
    if (i > 0) power = i == 2 ? square : matmul(power, square);
    Tensor even = power * element_wise::literal(b[i], power);
    Tensor odd = power * element_wise::literal(b[i + 1], power);
    v = v.defined() ? v + even : even;
    u = u.defined() ? u + odd : odd;
  }
  return {matmul(x, u), v};
}

// The numbers of Higham's table 2.3: up to these norms the approximants are exact to rounding.
constexpr double kReach13 = 5.371920351148152, kReach7 = 3.925724783138660;
constexpr double kPade13[] = {64764752532480000,
                              32382376266240000,
                              7771770303897600,
                              1187353796428800,
                              129060195264000,
                              10559470521600,
                              670442572800,
                              33522128640,
                              1323241920,
                              40840800,
                              960960,
                              16380,
                              182,
                              1};
constexpr double kPade7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};

Tensor exponential(const Tensor& x) {
  bool wide = real_dtype(x.dtype()) == DType::f64;
  Tensor norm = column_norm(x);
  Tensor reach = element_wise::literal(wide ? kReach13 : kReach7, norm);
  Tensor times = maximum(ceil(log2(norm / reach)), zeros_like(norm));
  times = where(isfinite(times), times, zeros_like(times));
  Tensor scaled = x * astype(as_matrices(exp2(-times)), x.dtype());
  auto [u, v] = approximants(
      scaled, wide ? std::span<const double>(kPade13) : std::span<const double>(kPade7));
  Tensor made = solve_by_lu(v - u, v + u);
  return while_tensors([&](std::span<const Tensor> c) { return Values{any(greater(times, c[0]))}; },
                       [&](std::span<const Tensor> c) {
                         Tensor going = as_matrices(greater(times, c[0]));
                         return Values{c[0] + 1, where(going, matmul(c[1], c[1]), c[1])};
                       },
                       {zeros({}, times.dtype()), made})[1];
}

// ---- The square root and the logarithm, by upper triangular matrices.

// The square root of upper triangular matrices, a column at a time: above its diagonal element r,
// column j of the root solves (root + r) y = t[:, j]. A root that does not exist is NaN.
Tensor triangular_root(const Tensor& t) {
  std::int64_t n = t.dim(-1);
  Tensor row = iota(DType::i32, {n, 1}, 0), column = iota(DType::i32, {1, n}, 1);
  Tensor on_diagonal = equal(row, column), zero = zeros({}, t.dtype());
  Tensor roots = sqrt(diagonal(t));  // of the principal branch
  Tensor root = while_tensors(
      [&](std::span<const Tensor> c) { return Values{less(c[0], static_cast<int>(n))}; },
      [&](std::span<const Tensor> c) {
        const Tensor &j = c[0], &made = c[1];
        Tensor own = where(equal(iota(DType::i32, {n}, 0), j), roots, zero);
        Tensor r = expand_dims(sum(own, -1, true), -1);
        Tensor shifted = made + where(on_diagonal, r, zero);
        Tensor inside = logical_and(less(row, j), less(column, j));
        Tensor absent =
            logical_and(on_diagonal, logical_or(equal(shifted, zero), less_equal(j, row)));
        Tensor system = where(absent, ones_like(made), where(inside, shifted, zero));
        Tensor side = sum(where(equal(column, j), t, zero), -1, true);
        side = where(less(row, j), side, zero);
        Tensor y = triangular_solve(system, side, {.lower = false});
        y = y + where(equal(row, j), r, zero);
        return Values{j + 1, where(equal(column, j), y, made)};
      },
      {index_state(0), zeros_like(t)})[1];
  double few = std::sqrt(epsilon_of(t.dtype()));
  Tensor size = column_norm(t), difference = column_norm(matmul(root, root) - t);
  return or_nan(less_equal(difference, size * element_wise::literal(few, size)), root);
}

Values complex_schur(const Tensor& x) { return record_all(schur_op, nullptr, {&x, 1}, x.where()); }

Tensor square_root(const Tensor& x) {
  Values form = complex_schur(x);
  return matmul(matmul(form[1], triangular_root(form[0])), adjoint(form[1]));
}

// Nodes and weights of Gauss-Legendre quadrature with 8 points on [0, 1]
// (M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, table 25.4).
constexpr std::pair<double, double> kGauss[] = {{0.1834346424956498, 0.3626837833783620},
                                                {0.5255324099163290, 0.3137066458778873},
                                                {0.7966664774136267, 0.2223810344533745},
                                                {0.9602898564975363, 0.1012285362903763}};
// Up to this distance from the identity, the approximation has the precision of f64.
constexpr double kNearOne = 0.25;
// More roots than any number needs.
constexpr int kMostRoots = 100;

Tensor logarithm(const Tensor& x) {
  Values form = complex_schur(x);
  Tensor one = unit_matrices(x.type()), zero = zeros_like(column_norm(x));
  auto is_far = [&](const Tensor& t) {
    Tensor distance = column_norm(t - one);
    return greater(distance, element_wise::literal(kNearOne, distance));
  };
  Values made = while_tensors(
      [&](std::span<const Tensor> c) {
        return Values{logical_and(less(c[0], kMostRoots), any(is_far(c[1])))};
      },
      [&](std::span<const Tensor> c) {
        Tensor far = is_far(c[1]);
        Tensor next = where(as_matrices(far), triangular_root(c[1]), c[1]);
        return Values{c[0] + 1, next, c[2] + astype(far, c[2].dtype())};
      },
      {index_state(0), triu(form[0]), zero});
  // The integral of y / (1 + s y) over s from 0 to 1, for y = t - 1.
  Tensor y = made[1] - one, total;
  for (auto [node, weight] : kGauss)
    for (double at : {0.5 * (1 - node), 0.5 * (1 + node)}) {
      Tensor part = triangular_solve(one + y * element_wise::literal(at, y), y, {.lower = false});
      part = part * element_wise::literal(0.5 * weight, part);
      total = total.defined() ? total + part : part;
    }
  total = total * astype(as_matrices(exp2(made[2])), x.dtype());
  total = or_nan(logical_not(is_far(made[1])), total);
  return matmul(matmul(form[1], total), adjoint(form[1]));
}

// The emission of a function of matrices that are not empty.
template <Tensor (*function)(const Tensor& x)>
void emit_function(const OpCall& call, OpEmission& out) {
  emit_composition(call, out, [](std::span<const Tensor> x) {
    return Values{x[0].shape().size() == 0 ? x[0] : function(x[0])};
  });
}

}  // namespace

extern constinit const OpDef expm_op = {
    .name = "expm",
    .operands = "x",
    .example = "linalg::expm(matmul(x, permute_dims(x)))",
    .infer = infer_function,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_function<exponential>,
    .vjp = function_vjp,
    .batch = batch_unchanged,
    .traits = {.runs_on_shards = every_call},
};

extern constinit const OpDef sqrtm_op = {
    .name = "sqrtm",
    .operands = "x",
    .example = "linalg::sqrtm(matmul(x, permute_dims(x)) + eye(2))",
    .infer = infer_complex_function,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_function<square_root>,
    .vjp = function_vjp,
    .batch = batch_unchanged,
    .traits = {.runs_on_shards = every_call},
};

extern constinit const OpDef logm_op = {
    .name = "logm",
    .operands = "x",
    .example = "linalg::logm(matmul(x, permute_dims(x)) + eye(2))",
    .infer = infer_complex_function,
    .sharding_rule = batch_of_matrices_rule,
    .emit = emit_function<logarithm>,
    .vjp = function_vjp,
    .batch = batch_unchanged,
    .traits = {.runs_on_shards = every_call},
};

namespace {

Tensor record_function(const OpDef& op, const Tensor& x, const SourceLocation& where) {
  return record(op, nullptr, {&x}, where);
}

Tensor as_complex(const Tensor& x) { return astype(x, complex_dtype(x.dtype())); }

// G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
// problems whose variables separate, 1973, equation 4.12.
void pseudo_inverse_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &a = call.operands[0], &p = call.results[0];
  Tensor g = conjugated(call.cotangents[0]), ph = adjoint(p), gh = adjoint(g);
  Tensor php = matmul(ph, p), pph = matmul(p, ph);
  Tensor total = -matmul(matmul(ph, g), ph);
  Tensor from_left = matmul(gh, pph), from_right = matmul(php, gh);
  total = total + (from_left - matmul(a, matmul(p, from_left)));
  total = total + (from_right - matmul(matmul(from_right, p), a));
  out[0] = conjugated(total);
}

}  // namespace

extern constinit const OpDef pseudo_inverse_op = {
    .name = "pseudo_inverse",
    .operands = "x, inverse",
    .doc = "The pseudo-inverse of x, which is given, with its derivative.",
    .example = "linalg::pinv(x)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType &x = call.operand(0), &inverse = call.operand(1);
          check_matrix(call, x, false);
          TensorType expected = x;
          expected.shape =
              expected.shape.with(x.rank() - 2, x.shape[-1]).with(x.rank() - 1, x.shape[-2]);
          if (inverse != expected) call.fail("the inverse of ", x, " is ", inverse);
          results.push_back(inverse);
        },
    .sharding_rule =
        [](const OpCall& call) {
          const Shape& x = call.operand(0).shape;
          ShardingRuleBuilder builder;
          TensorFactors given = own_factors(builder, x), inverse = given;
          std::swap(inverse[inverse.size() - 1], inverse[inverse.size() - 2]);
          return builder.operand(given).operand(inverse).result(inverse).build();
        },
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.writer
              .op("stablehlo.reshape", {out.results[0]}, {{out.operands[1].value, call.operand(1)}},
                  out.location)
              .done();
        },
    .vjp = pseudo_inverse_vjp,
    .batch = batch_unchanged,
};

Tensor pseudo_inverse(In x, In inverse) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(pseudo_inverse_op, x);
  Tensor fixed = stop_gradient(operand_tensor(pseudo_inverse_op, inverse));
  return record(pseudo_inverse_op, nullptr, {&operand, &fixed}, x.where);
}

Tensor expm(In x) {
  SourceScope line(x.where);
  Tensor given = square_matrices("expm", x);
  return from_factors(record_function(expm_op, for_factors(given), x.where), given.dtype());
}

Tensor sqrtm(In x) {
  SourceScope line(x.where);
  return record_function(sqrtm_op, as_complex(for_factors(square_matrices("sqrtm", x))), x.where);
}

Tensor logm(In x) {
  SourceScope line(x.where);
  return record_function(logm_op, as_complex(for_factors(square_matrices("logm", x))), x.where);
}

}  // namespace meshard
