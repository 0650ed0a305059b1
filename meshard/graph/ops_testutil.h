// Ops for tests, so that graph/ is tested without ops/.
#pragma once
#include "meshard/graph/annotate.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"

namespace meshard::test {

struct ScaleAttributes {
  double factor = 1;
  std::vector<std::int64_t> marks;
  MESHARD_FIELDS(factor, marks)
};

inline void infer_first(const OpCall& call, ResultTypes& results) {
  for (std::size_t i = 1; i < call.operands.size(); ++i)
    if (call.operand(i) != call.operand(0))
      call.fail("types differ: ", call.operand(0), " and ", call.operand(i));
  results.push_back(call.operand(0));
}

inline constinit const OpDef plus_op = {.name = "plus", .operands = "a, b", .infer = infer_first};
inline constinit const OpDef scale_op = {.name = "scale",
                                         .operands = "x",
                                         .infer = infer_first,
                                         .parse_attributes = parse_attributes<ScaleAttributes>};
/// An op with two results: the operand, and a flag.
inline constinit const OpDef pair_op = {
    .name = "pair", .operands = "x", .infer = [](const OpCall& call, ResultTypes& results) {
      results.push_back(call.operand(0));
      results.push_back({DType::bool_, Shape{}});
    }};

/// Attributes of an op whose result is inside manual axes of mesh<x=2, y=2>, for any operand.
struct LocalAttributes {
  AxisList axes, varying;
  MESHARD_FIELDS(axes, varying)
};
inline const OpDef local_op = {
    .name = "local",
    .operands = "x",
    .infer = infer_first,
    .annotate =
        [](const Node& node) {
          const auto& [axes, varying] = node.attributes_as<LocalAttributes>();
          Mesh mesh({{"x", 2}, {"y", 2}});
          return annotations_of({mesh, AxisSet(mesh, axes), AxisSet(mesh, varying)});
        },
    .parse_attributes = parse_attributes<LocalAttributes>};
/// An op without operands.
inline constinit const OpDef one_op = {
    .name = "one", .operands = "", .infer = [](const OpCall&, ResultTypes& results) {
      results.push_back({DType::f32, Shape{2}});
    }};

inline Tensor plus(In a, In b) { return record(plus_op, nullptr, {a.tensor, b.tensor}, a.where); }
inline Tensor scale(In x, double factor, std::vector<std::int64_t> marks = {}) {
  return record(scale_op, make_attributes(ScaleAttributes{factor, std::move(marks)}), {x.tensor},
                x.where);
}
inline Tensor pair(In x) { return record(pair_op, nullptr, {x.tensor}, x.where); }
inline Tensor local(In x, AxisList axes, AxisList varying) {
  return record(local_op, make_attributes(LocalAttributes{std::move(axes), std::move(varying)}),
                {x.tensor}, x.where);
}
inline Tensor one(SourceLocation where = SourceLocation::current()) {
  return record(one_op, nullptr, {}, where);
}

inline const OpDef* find_test_op(std::string_view name) {
  for (const OpDef* op : {&plus_op, &scale_op, &pair_op, &local_op, &one_op})
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace meshard::test
