// Tested in meshard/ops/movement_test.cc.
#include "meshard/ops/definition/operand.h"

#include <limits>

#include "meshard/base/error.h"
#include "meshard/graph/annotation.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {

Tensor operand_tensor(std::string_view op, const In& x) {
  if (!x.tensor) {
    DType dtype = x.scalar.kind == ScalarKind::kBool      ? DType::bool_
                  : x.scalar.kind == ScalarKind::kInteger ? kDefaultInteger
                                                          : kDefaultFloat;
    return element_wise::to_tensor(x, dtype);
  }
  if (!x.tensor->defined())
    throw_invalid(effective_source(x.where), "[", op,
                  "] an operand has no value: it was default-constructed or moved from");
  return *x.tensor;
}

Tensor operand_tensor(const OpDef& op, const In& x) { return operand_tensor(op.name, x); }

std::vector<Tensor> record_all(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                               std::span<const Tensor> operands, SourceLocation where) {
  InlineVector<const Tensor*, 4> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  Tensor first = record(op, std::move(attributes),
                        std::span<const Tensor* const>(pointers.data(), pointers.size()), where);
  std::vector<Tensor> results;
  for (std::uint32_t i = 0; i < first.value()->num_outputs(); ++i)
    results.emplace_back(Value(first.value().node(), i));
  return results;
}

void add_named_types(const OpCall& call, std::string_view text, ResultTypes& results) {
  for (std::string_view left = text; !left.empty();) {
    std::size_t end = std::min(left.find(' '), left.size());
    Result<TensorType> type = TensorType::parse(left.substr(0, end));
    if (!type.ok()) call.fail("result types '", text, "': ", type.error().message());
    results.push_back(std::move(type).value());
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  if (results.empty()) call.fail("requires at least one result type");
}

Tensor filled(const TensorType& type, double value) {
  return broadcast_to(constant(HostArray::full(TensorType{type.dtype, {}}, value)), type.shape);
}

HostArray lowest_of(DType dtype) {
  if (is_floating(dtype))
    return HostArray::full({dtype, {}}, -std::numeric_limits<double>::infinity());
  return HostArray::scalar(integer_limits(dtype).min).astype(dtype);
}

HostArray highest_of(DType dtype) {
  if (is_floating(dtype))
    return HostArray::full({dtype, {}}, std::numeric_limits<double>::infinity());
  return HostArray::scalar(integer_limits(dtype).max).astype(dtype);
}

Tensor slice_along(const Tensor& x, std::int64_t dimension, std::int64_t start, std::int64_t stop) {
  Dimensions first(static_cast<std::size_t>(x.rank()), 0), end = x.shape().sizes();
  auto d = static_cast<std::size_t>(dimension < 0 ? dimension + x.rank() : dimension);
  first[d] = start;
  end[d] = stop;
  return slice(x, std::move(first), std::move(end));
}

Tensor pad_along(const Tensor& x, In value, std::int64_t dimension, std::int64_t low,
                 std::int64_t high) {
  Dimensions before(static_cast<std::size_t>(x.rank()), 0), after = before;
  auto d = static_cast<std::size_t>(dimension < 0 ? dimension + x.rank() : dimension);
  before[d] = low;
  after[d] = high;
  return pad(x, value, std::move(before), std::move(after));
}

DType sum_dtype(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::i8:
    case DType::i16: return kDefaultInteger;
    case DType::u8:
    case DType::u16: return DType::u32;
    default: return dtype;
  }
}

Dimensions inverse_of(const Dimensions& permutation) {
  Dimensions inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  return inverse;
}

void check_one_each(const OpCall& call, std::string_view what, std::size_t count,
                    const TensorType& operand) {
  if (count != static_cast<std::size_t>(operand.rank()))
    call.fail(what, " has ", count, " entries, ", operand, " has rank ", operand.rank());
}

void check_dimension(const OpCall& call, std::string_view what, std::int64_t dimension) {
  const TensorType& operand = call.operand(0);
  if (dimension < 0 || dimension >= operand.rank())
    call.fail(what, " ", dimension, " is outside 0..", operand.rank() - 1, " of ", operand);
}

void check_ascending(const OpCall& call, const Dimensions& dimensions) {
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    check_dimension(call, "dimension", dimensions[i]);
    if (i > 0 && dimensions[i] <= dimensions[i - 1])
      call.fail("dimensions [", join(dimensions, ", "), "] are not ascending");
  }
}

TensorFactors own_factors(ShardingRuleBuilder& builder, const Shape& shape, FactorKind kind) {
  TensorFactors factors;
  for (std::int64_t size : shape) factors.push_back({builder.factor(size, kind)});
  return factors;
}

ShardingRule whole_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  for (const TensorType* type : call.operands)
    builder.operand(own_factors(builder, type->shape, FactorKind::kNeedReplication));
  for (const TensorType* type : call.results)
    builder.result(own_factors(builder, type->shape, FactorKind::kNeedReplication));
  return builder.build();
}

TensorFactors one_factor_each(const InlineVector<int, 6>& factors) {
  TensorFactors tensor;
  tensor.reserve(factors.size());
  for (int factor : factors) tensor.push_back({factor});
  return tensor;
}

Tensor weak_number(const Tensor& wide) {
  if (wide.dtype() == DType::bool_) return wide;
  Tensor number = astype(wide, is_integer(wide.dtype()) ? kDefaultInteger : kDefaultFloat);
  set_wide_number(number, wide);
  return number;
}

Tensor large_number(const Tensor& wide) {
  // A node of its own, because the annotation refers to the number.
  Tensor number = record(reshape_op, make_attributes(ReshapeAttributes{Shape{}}), {&wide},
                         effective_source(wide.where()));
  set_wide_number(number, wide);
  return number;
}

Tensor number_like(const Tensor& number, const Tensor& wide) {
  return number.dtype() == wide.dtype() ? large_number(wide) : weak_number(wide);
}

Tensor weak_parameter(const Tensor& parameter) {
  // A node of its own, as for large numbers.
  Tensor number = record(reshape_op, make_attributes(ReshapeAttributes{Shape{}}), {&parameter},
                         effective_source(parameter.where()));
  const bool is_float = is_floating(parameter.dtype());
  set_wide_number(number, astype(parameter, is_float                          ? DType::f64
                                            : parameter.dtype() == DType::u64 ? DType::u64
                                                                              : DType::i64));
  return number;
}

bool can_replace(const Tensor& number, DType dtype) {
  return is_inexact(dtype) || (is_integer(number.dtype()) && is_integer(dtype));
}

void check_holds_large(const In& x, DType dtype) {
  const Tensor wide = wide_number(x);
  if (!wide.defined() || wide.dtype() != x.tensor->dtype()) return;
  const bool is_float = is_floating(wide.dtype());
  const bool holds = is_float ? size_in_bytes(real_dtype(dtype)) == 8 && is_inexact(dtype)
                     : is_inexact(dtype) ? dtype != DType::f16 && !is_float8(dtype)
                                         : dtype == wide.dtype() || dtype == DType::bool_;
  if (!holds)
    throw_invalid(effective_source(x.where), "[number] ", dtype,
                  " cannot hold a number argument that ",
                  is_float ? kDefaultFloat : kDefaultInteger,
                  " cannot hold: use a wider dtype for the other operand, or pass a tensor");
}

Tensor wide_number(const In& x) {
  if (!x.tensor || !x.tensor->defined()) return {};
  const Annotations* annotations = x.tensor->value()->annotations().get();
  return annotations && annotations->wide ? Tensor(annotations->wide) : Tensor();
}

std::optional<ScalarKind> weak_kind(const In& x) {
  if (!x.tensor) return x.scalar.kind;
  if (!wide_number(x).defined()) return std::nullopt;
  return is_integer(x.tensor->dtype()) ? ScalarKind::kInteger : ScalarKind::kFloat;
}

void set_wide_number(const Tensor& result, const Tensor& wide) {
  const Node& node = *result.value().node();
  Annotations annotations = node.annotations() ? *node.annotations() : Annotations{};
  annotations.wide = wide.value();
  result.value().node()->annotate(std::make_shared<const Annotations>(std::move(annotations)));
}

}  // namespace meshard
