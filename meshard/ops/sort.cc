#include "meshard/ops/sort.h"

#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

using stablehlo::Typed;
using SsaValue = stablehlo::Value;

void infer_sort(const OpCall& call, ResultTypes& results) {
  if (call.operands.empty()) call.fail("takes at least one tensor");
  const TensorType& keys = call.operand(0);
  const SortAttributes& order = call.as<SortAttributes>();
  check_dimension(call, "dimension", order.dimension);
  if (order.keys < 1 || order.keys > static_cast<std::int64_t>(call.operands.size()))
    call.fail("keys = ", order.keys, " is outside 1..", call.operands.size(),
              ", the number of tensors");
  for (std::int64_t k = 0; k < order.keys; ++k)
    if (const TensorType& key = call.operand(static_cast<std::size_t>(k)); is_complex(key.dtype))
      call.fail("complex numbers have no order: the keys are ", key);
  for (const TensorType* type : call.operands) {
    if (type->shape != keys.shape)
      call.fail("shapes differ: the keys are ", keys, ", another tensor is ", *type);
    results.push_back(*type);
  }
}

// Writes comparisons of two elements, with NaN as the largest.
class Comparator {
 public:
  Comparator(OpEmission& out, DType dtype) : out_(out), scalar_{dtype, {}} {}

  SsaValue compare(std::string_view direction, SsaValue a, SsaValue b) {
    SsaValue result = out_.writer.temporary();
    out_.writer.op("stablehlo.compare", {{result, kBool}}, {{a, scalar_}, {b, scalar_}})
        .enumeration("comparison_direction", "comparison_direction", direction)
        .done();
    return result;
  }

  // True if a < b; every number is before NaN.
  SsaValue before(SsaValue a, SsaValue b) {
    SsaValue less = compare("LT", a, b);
    if (!is_floating(scalar_.dtype)) return less;
    SsaValue number = compare("EQ", a, a), nan = compare("NE", b, b);
    return logic("stablehlo.or", less, logic("stablehlo.and", number, nan));
  }

  // True if neither is before the other.
  SsaValue same(SsaValue a, SsaValue b) {
    SsaValue equal = compare("EQ", a, b);
    if (!is_floating(scalar_.dtype)) return equal;
    SsaValue nan = compare("NE", a, a), other = compare("NE", b, b);
    return logic("stablehlo.or", equal, logic("stablehlo.and", nan, other));
  }

  SsaValue logic(std::string_view mnemonic, SsaValue a, SsaValue b) {
    SsaValue result = out_.writer.temporary();
    out_.writer.elementwise(mnemonic, result, {a, b}, kBool);
    return result;
  }

 private:
  static inline const TensorType kBool{DType::bool_, {}};

  OpEmission& out_;
  TensorType scalar_;
};

// True if the first of two candidates goes before the second. The last key decides, unless an
// earlier one does.
SsaValue comes_first(OpEmission& out, const SortAttributes& order,
                     const std::vector<TensorType>& scalars, const std::vector<Typed>& arguments) {
  SsaValue first;
  for (auto key = static_cast<std::size_t>(order.keys); key-- > 0;) {
    SsaValue a = arguments[2 * key].value, b = arguments[2 * key + 1].value;
    Comparator comparator(out, scalars[key].dtype);
    SsaValue before = order.descending ? comparator.before(b, a) : comparator.before(a, b);
    bool is_last = key + 1 == static_cast<std::size_t>(order.keys);
    first = is_last
                ? before
                : comparator.logic("stablehlo.or", before,
                                   comparator.logic("stablehlo.and", comparator.same(a, b), first));
  }
  return first;
}

void emit_sort(const OpCall& call, OpEmission& out) {
  const SortAttributes& order = call.as<SortAttributes>();
  std::vector<TensorType> scalars;
  for (const TensorType* type : call.operands) scalars.push_back({type->dtype, {}});
  std::vector<Typed> arguments;
  for (const TensorType& scalar : scalars) {
    arguments.emplace_back(out.writer.block_argument(), scalar);
    arguments.emplace_back(out.writer.block_argument(), scalar);
  }
  TensorType truth{DType::bool_, {}};
  out.op("stablehlo.sort")
      .i64("dimension", order.dimension)
      .boolean("is_stable", true)
      .region(arguments,
              [&] {
                SsaValue first = comes_first(out, order, scalars, arguments);
                out.writer.terminate({{first, truth}});
              })
      .done();
}

// Moves each cotangent back to the position of its element.
void sort_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [dimension, descending, keys] = call.as<SortAttributes>();
  std::vector<Tensor> sorted(call.operands.begin(), call.operands.begin() + keys);
  Tensor places = iota(DType::i32, sorted[0].shape(), dimension);
  sorted.push_back(places);
  Tensor from = sort(sorted, dimension, descending, keys).back();
  Tensor to = sort({from, places}, dimension)[1];
  for (std::size_t i = 0; i < call.cotangents.size(); ++i)
    if (call.cotangents[i].defined() && call.needs(i))
      out[i] = take_along_axis(call.cotangents[i], to, dimension);
}

}  // namespace

extern constinit const OpDef sort_op = {
    .name = "sort",
    .operands = "tensors...",
    .example = "sort(x, 1)",
    .infer = infer_sort,
    .sharding_rule = along_rule<SortAttributes, &SortAttributes::dimension>,
    .emit = emit_sort,
    .read = {.mnemonic = "stablehlo.sort",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(
                       SortAttributes{text.number({"dimension"}, text.operands[0].rank() - 1)});
                 }},
    .vjp = sort_vjp,
    .batch = batch_along<SortAttributes, &SortAttributes::dimension>,
    .parse_attributes = parse_attributes<SortAttributes>,
};

std::vector<Tensor> sort(const std::vector<Tensor>& tensors, std::int64_t dimension,
                         bool descending, std::int64_t keys, SourceLocation where) {
  where = effective_source(where);
  if (!tensors.empty())
    dimension = normalize_dimension(dimension, tensors[0].type(where).shape.rank(), "sort", where);
  return record_all(sort_op, make_attributes(SortAttributes{dimension, descending, keys}), tensors,
                    where);
}

Tensor sort(In x, std::int64_t dimension, bool descending) {
  return sort(std::vector{operand_tensor(sort_op, x)}, dimension, descending, 1, x.where)[0];
}

}  // namespace meshard
