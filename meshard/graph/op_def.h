// OpDef: everything meshard knows about one primitive, in one constant (docs/dev/add-an-op.md).
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/shape.h"
#include "meshard/base/inline_vector.h"
#include "meshard/graph/attributes.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

struct Annotations;
class BodyDifferentiator;  // body_vjp.h
struct OpEmission;         // ops/emission.h: graph/ knows no StableHLO

/// What an op's functions see of one call: attributes, operand types, and, after inference, result
/// types.
struct OpCall {
  const OpDef& op;
  const Attributes* attributes = nullptr;
  InlineVector<const TensorType*, 4> operands = {};
  InlineVector<const TensorType*, 1> results = {};
  SourceLocation where = {};

  template <class T>
  const T& as() const {
    return static_cast<const AttributesOf<T>*>(attributes)->value();
  }
  const TensorType& operand(std::size_t i) const { return *operands[i]; }
  const TensorType& result(std::size_t i = 0) const { return *results[i]; }
  /// Throws an invalid-argument Error that begins with the op's name in brackets.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const;
};

/// The call that made a node.
inline OpCall call_of(const Node& node) {
  OpCall call{.op = node.op(),
              .attributes = node.attributes(),
              .operands = {},
              .results = {},
              .where = node.where()};
  for (const Value& operand : node.operands()) call.operands.push_back(&operand.type());
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) call.results.push_back(&node.type(i));
  return call;
}

using ResultTypes = InlineVector<TensorType, 1>;

/// What a vjp sees: the recorded call and the cotangents of its results.
struct VjpCall {
  const Node& node;
  std::span<const Tensor> operands;
  std::span<const Tensor> results;
  /// One per result; an undefined Tensor stands for zero.
  std::span<const Tensor> cotangents;
  /// Which operands' cotangents are wanted.
  std::span<const bool> needed;
  /// Of an op with control flow: differentiates its bodies.
  const BodyDifferentiator* bodies = nullptr;

  template <class T>
  const T& as() const {
    return node.attributes_as<T>();
  }
  bool needs(std::size_t i) const { return needed[i]; }
};

/// What a batch rule sees: a call that was recorded for one member of a batch, and its operands for
/// all of them. An operand i with batched[i] has the batch as an extra dimension 0, of `size`; the
/// others are shared by all members, and are as recorded.
struct BatchCall {
  const Node& node;
  std::span<const Tensor> operands;
  /// At least one of them is.
  std::span<const bool> batched;
  std::int64_t size = 0;
  /// The mesh axis that is to split the batch where the program says how values lie; empty: that is
  /// left to the compiler.
  std::string_view mesh_axis = {};

  template <class T>
  const T& as() const {
    return node.attributes_as<T>();
  }
  /// The type of an operand of one member.
  const TensorType& member(std::size_t i) const { return node.operands()[i].type(); }
};

/// One call that the conformance suites make of an op.
struct OpSample {
  std::string name;
  std::vector<HostArray> inputs;
  std::function<Tensor(std::span<const Tensor>)> call;
  /// False where finite differences make no sense there (a kink, an integer-valued function).
  bool check_vjp = true;
};

/// Makes random sample inputs, repeatable from a seed.
class SampleSource {
 public:
  explicit SampleSource(std::uint64_t seed) : state_(seed) {}
  /// Uniform in [low, high), rounded to `dtype`; integers are in [low, high], both parts of complex
  /// numbers uniform.
  HostArray uniform(DType dtype, Shape shape, double low = -2.0, double high = 2.0);
  /// Values at least `gap` away from one another, in random order: no ties in max, no kinks near.
  HostArray distinct(DType dtype, Shape shape, double gap = 0.25);
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

/// A primitive, defined once. A value with static storage; nodes refer to it by address.
struct OpDef {
  /// The public name, in C++ and in every other language: the array API standard's where it has
  /// one.
  std::string_view name = {};
  /// Operand names for messages and the reference page: `lhs, rhs`. A trailing `...` takes any
  /// number.
  std::string_view operands = {};
  /// The reference page's paragraph.
  std::string_view doc = {};
  /// One line of C++ that runs with `x`, `y` (f32[2,3]) in scope.
  std::string_view example = {};
  /// Result types from operand types and attributes; throws through OpCall::fail.
  void (*infer)(const OpCall& call, ResultTypes& results) = nullptr;
  /// How dimensions of operands and results correspond.
  ShardingRule (*sharding_rule)(const OpCall& call) = nullptr;
  /// Writes the op as StableHLO.
  void (*emit)(const OpCall& call, OpEmission& out) = nullptr;
  /// Adds nodes that compute the operands' cotangents into `out` (one per operand; undefined means
  /// zero). nullptr, written kNotDifferentiable, for ops without a derivative.
  void (*vjp)(const VjpCall& call, std::span<Tensor> out) = nullptr;
  /// Records the call for all members of a batch at once; every result has the batch as dimension
  /// 0. nullptr: vmap of the op is an error that names it. Ops without operands are never asked.
  void (*batch)(const BatchCall& call, std::span<Tensor> results) = nullptr;
  /// The calls that the conformance suites check.
  std::vector<OpSample> (*samples)(SampleSource& source) = nullptr;
  /// What the results of a call carry besides their types, for ops that change it: those that enter
  /// and leave manual axes, and collectives. Checks what inference cannot see; throws through
  /// fail_at. nullptr for all other ops: the common rule of graph/annotate.h.
  std::shared_ptr<const Annotations> (*annotate)(const Node& node) = nullptr;
  /// With explicit axes: why operands so sharded give no result, though the sharding rule has one;
  /// empty if they do. An operand without a sharding is nullptr. For few ops.
  std::string (*sharding_conflict)(const OpCall& call,
                                   std::span<const Sharding* const> operands) = nullptr;
  /// Reads the attributes back from their printed form; nullptr for ops without attributes.
  Result<std::unique_ptr<const Attributes>> (*parse_attributes)(std::string_view text) = nullptr;
};

/// In place of OpDef::vjp: the op has no derivative, and that is meant.
inline constexpr std::nullptr_t kNotDifferentiable = nullptr;

/// Throws an invalid-argument Error at a node's line that begins with its op's name in brackets.
template <class... Parts>
[[noreturn]] void fail_at(const Node& node, const Parts&... parts) {
  throw_invalid(node.where(), "[", node.op().name, "] ", parts...);
}

template <class... Parts>
void OpCall::fail(const Parts&... parts) const {
  throw_invalid(where, "[", op.name, "] ", parts...);
}

}  // namespace meshard
