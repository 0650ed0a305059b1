#include "meshard/ops/definition/element_wise.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "meshard/graph/leaf.h"
#include "meshard/graph/storage.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard::element_wise {
namespace {

std::string_view domain_name(DTypeDomain domain) {
  switch (domain) {
    case DTypeDomain::kNone:
    case DTypeDomain::kAny: return "any dtype";
    case DTypeDomain::kOrdered: return "real numbers or bools";
    case DTypeDomain::kNumber: return "integers or floats";
    case DTypeDomain::kSigned: return "signed integers or floats";
    case DTypeDomain::kFloat: return "floats";
    case DTypeDomain::kNumberOrComplex: return "integers, floats or complex numbers";
    case DTypeDomain::kSignedOrComplex: return "signed integers, floats or complex numbers";
    case DTypeDomain::kFloatOrComplex: return "floats or complex numbers";
    case DTypeDomain::kIntegerOrBool: return "integers or bools";
    case DTypeDomain::kInteger: return "integers";
    case DTypeDomain::kBool: return "bools";
  }
  return "";
}

std::string_view advice(DTypeDomain domain, DType dtype) {
  if (dtype == DType::bool_)
    return ": use logical_or, logical_and or logical_xor, or convert with astype";
  return domain == DTypeDomain::kBool ? ": compare first, as in not_equal(x, 0)" : "";
}

const Tensor& defined(const OpDef& op, const In& x) {
  if (!x.tensor->defined())
    throw_invalid(effective_source(x.where), "[", op.name,
                  "] an operand has no value: it was default-constructed or moved from");
  return *x.tensor;
}

DType natural_dtype(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kBool: return DType::bool_;
    case ScalarKind::kInteger: return kDefaultInteger;
    case ScalarKind::kFloat: return kDefaultFloat;
  }
  return kDefaultFloat;
}

std::string describe(const In& x) {
  if (!x.tensor) return cat("a number of dtype ", natural_dtype(x.scalar.kind));
  return cat(x.tensor->value().type(), " made at ", x.tensor->where());
}

TensorType result_type(const OpDef& op, const TensorType& operand) {
  return op.gives_bools ? TensorType{DType::bool_, operand.shape} : operand;
}

// Records a call whose result type is known. The result of weakly typed operands alone is weakly
// typed: the call is recorded on the wide numbers too.
Tensor recorded(const OpDef& op, std::initializer_list<const In*> given,
                std::initializer_list<const Tensor*> operands, SourceLocation where) {
  const TensorType& type = (*operands.begin())->value().type();
  Tensor result = record_typed(op, nullptr, operands, result_type(op, type), where);
  bool any_tensor = false, all_weak = !op.gives_bools && type.rank() == 0;
  for (const In* each : given) {
    any_tensor = any_tensor || each->tensor;
    all_weak = all_weak && weak_kind(*each);
  }
  if (!all_weak || !any_tensor || type.dtype == DType::bool_) return result;
  DType dtype = is_integer(type.dtype) ? DType::i64 : DType::f64;
  InlineVector<Tensor, 2> wide;
  for (const In* each : given) wide.push_back(to_tensor(*each, dtype));
  TensorType wide_type{dtype, Shape{}};
  set_wide_number(result, wide.size() == 1
                              ? record_typed(op, nullptr, {&wide[0]}, wide_type, where)
                              : record_typed(op, nullptr, {&wide[0], &wide[1]}, wide_type, where));
  return result;
}

}  // namespace

bool accepts(DTypeDomain domain, DType dtype) {
  switch (domain) {
    case DTypeDomain::kNone: return false;
    case DTypeDomain::kAny: return true;
    case DTypeDomain::kOrdered: return !is_complex(dtype);
    case DTypeDomain::kNumber: return is_integer(dtype) || is_floating(dtype);
    case DTypeDomain::kSigned: return is_signed_integer(dtype) || is_floating(dtype);
    case DTypeDomain::kFloat: return is_floating(dtype);
    case DTypeDomain::kNumberOrComplex: return is_integer(dtype) || is_inexact(dtype);
    case DTypeDomain::kSignedOrComplex: return is_signed_integer(dtype) || is_inexact(dtype);
    case DTypeDomain::kFloatOrComplex: return is_inexact(dtype);
    case DTypeDomain::kIntegerOrBool: return is_integer(dtype) || dtype == DType::bool_;
    case DTypeDomain::kInteger: return is_integer(dtype);
    case DTypeDomain::kBool: return dtype == DType::bool_;
  }
  return false;
}

DType enter_domain(const OpDef& op, DType dtype, SourceLocation where) {
  bool converts = op.domain == DTypeDomain::kFloat || op.domain == DTypeDomain::kFloatOrComplex;
  if (converts && !is_inexact(dtype)) return kDefaultFloat;
  if (!accepts(op.domain, dtype))
    throw_invalid(where, "[", op.name, "] takes ", domain_name(op.domain), ", not ", dtype,
                  advice(op.domain, dtype));
  return dtype;
}

Tensor to_tensor(const In& x, DType dtype) {
  if (x.tensor) return x.tensor->type(x.where).dtype == dtype ? *x.tensor : astype(x, dtype);
  const SourceLocation& where = effective_source(x.where);
  // 0 and 1 are usually parts of formulas and rarely change from call to call.
  bool formula =
      x.scalar.floating == 1 || (x.scalar.floating == 0 && !std::signbit(x.scalar.floating));
  if (x.scalar.kind != ScalarKind::kFloat || tracing() || formula || x.scalar.is_above_f64)
    return constant(scalar_array(x.scalar, dtype, where), where);
  return make_array(TensorType{dtype, Shape{}}, number_storage(dtype, x.scalar.floating, where),
                    where);
}

Tensor literal(double value, const Tensor& like) {
  return constant(scalar_array(Scalar(value), like.dtype(), effective_source(like.where())),
                  like.where());
}

DType dtype_of_operand(const OpDef& op, const In& x) {
  return x.tensor ? defined(op, x).value().type().dtype : natural_dtype(x.scalar.kind);
}

DType common_dtype(const OpDef& op, const In& a, const In& b) {
  DType left = dtype_of_operand(op, a), right = dtype_of_operand(op, b);
  if (left == right && a.tensor && b.tensor) return left;
  std::optional<ScalarKind> left_kind = weak_kind(a), right_kind = weak_kind(b);
  if (left_kind && (!right_kind || !a.tensor) && b.tensor) return promote_scalar(right, *left_kind);
  if (right_kind && (!left_kind || !b.tensor) && a.tensor) return promote_scalar(left, *right_kind);
  if (left == right) return left;
  try {
    return promote(left, right, effective_source(a.where));
  } catch (const Error& error) {
    throw error.with_note(cat("in [", op.name, "] of ", describe(a), " and ", describe(b)));
  }
}

Shape broadcast_shapes(const OpDef& op, const Shape& a, const Shape& b, SourceLocation where) {
  int rank = std::max(a.rank(), b.rank());
  Dimensions sizes(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    int in_a = i - (rank - a.rank()), in_b = i - (rank - b.rank());
    std::int64_t size_a = in_a < 0 ? 1 : a[in_a], size_b = in_b < 0 ? 1 : b[in_b];
    if (size_a != size_b && size_a != 1 && size_b != 1)
      throw_invalid(where, "[", op.name, "] shapes ", a, " and ", b,
                    " do not broadcast: dimension ", in_a, " of the first = ", size_a,
                    ", dimension ", in_b, " of the second = ", size_b);
    sizes[static_cast<std::size_t>(i)] = size_a == 1 ? size_b : size_a;
  }
  return Shape(std::move(sizes));
}

void broadcast_together(const OpDef& op, std::span<Tensor> operands, SourceLocation where) {
  Shape shape = operands[0].value().type().shape;
  try {
    for (const Tensor& operand : operands.subspan(1))
      shape = broadcast_shapes(op, shape, operand.value().type().shape, where);
  } catch (const Error& error) {
    Error noted = error;
    for (const Tensor& operand : operands)
      noted = noted.with_note(cat(operand.value().type(), " was made at ", operand.where()));
    throw noted;
  }
  for (Tensor& operand : operands)
    if (operand.value().type().shape != shape) operand = broadcast_to(In(operand, where), shape);
}

Tensor unary(const OpDef& op, const In& x) {
  const SourceLocation& where = effective_source(x.where);
  DType dtype = enter_domain(op, dtype_of_operand(op, x), where);
  Tensor operand = to_tensor(x, dtype);
  return recorded(op, {&x}, {&operand}, where);
}

Tensor binary(const OpDef& op, const In& a, const In& b) {
  // Fast path for the common case: nothing to promote or broadcast.
  if (a.tensor && b.tensor && a.tensor->defined() && b.tensor->defined()) [[likely]] {
    const TensorType &left = a.tensor->value().type(), &right = b.tensor->value().type();
    bool is_number = left.rank() == 0 && weak_kind(a) && weak_kind(b);
    if (left == right && accepts(op.domain, left.dtype) && !is_number) [[likely]] {
      if (!op.gives_bools) [[likely]]
        return record_typed(op, nullptr, {a.tensor, b.tensor}, left, a.where);
      return record_typed(op, nullptr, {a.tensor, b.tensor}, result_type(op, left), a.where);
    }
  }
  SourceLocation where = effective_source(a.where);
  DType dtype = enter_domain(op, common_dtype(op, a, b), where);
  std::array operands{to_tensor(a, dtype), to_tensor(b, dtype)};
  broadcast_together(op, operands, where);
  return recorded(op, {&a, &b}, {&operands[0], &operands[1]}, where);
}

void check_operands(const OpCall& call, DTypeDomain domain) {
  for (std::size_t i = 1; i < call.operands.size(); ++i)
    if (call.operand(i) != call.operand(0))
      call.fail("operand types differ: ", call.operand(0), " and ", call.operand(i));
  DType dtype = call.operand(0).dtype;
  if (!accepts(domain, dtype))
    call.fail("takes ", domain_name(domain), ", not ", dtype, advice(domain, dtype));
}

void infer(const OpCall& call, ResultTypes& results) {
  check_operands(call, call.op.domain);
  results.push_back(result_type(call.op, call.operand(0)));
}

void emit(const OpCall& call, OpEmission& out) {
  // The short form is that of StableHLO's ops whose operands and result have one type.
  if (call.op.gives_bools || call.result() != call.operand(0) ||
      call.op.mnemonic.starts_with("chlo."))
    out.op(call.op.mnemonic).done();
  else
    out.element_wise(call.op.mnemonic);
}

void multiply_by_slope(const VjpCall& call, std::span<Tensor> out, const Tensor& slope) {
  out[0] = multiply(call.cotangents[0], slope);
}

void chosen_vjp(const VjpCall& call, std::span<Tensor> out) {
  Tensor half = multiply(call.cotangents[0], literal(0.5, call.cotangents[0]));
  Tensor share = where(equal(call.operands[0], call.operands[1]), half, call.cotangents[0]);
  for (std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (call.needs(i)) out[i] = where(equal(call.operands[i], call.results[0]), share, 0);
}

ShardingRule rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  TensorFactors dimensions;
  for (std::int64_t size : call.result().shape.sizes())
    dimensions.push_back(DimensionFactors{builder.factor(size)});
  for (std::size_t i = 0; i < call.operands.size(); ++i) builder.operand(dimensions);
  for (std::size_t i = 0; i < call.results.size(); ++i) builder.result(dimensions);
  return builder.build();
}

void batch(const BatchCall& call, std::span<Tensor> results) { batch_unchanged(call, results); }

}  // namespace meshard::element_wise
