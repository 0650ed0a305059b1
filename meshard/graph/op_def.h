// OpDef: the complete definition of one primitive, in one constant (docs/dev/add-an-op.md).
#pragma once
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
struct AxisMove;           // sharding/axis_moves.h
class BodyDifferentiator;  // body_vjp.h
struct OpEmission;         // ops/definition/emission.h: graph/ does not depend on StableHLO
struct OpText;             // ops/definition/op_text.h

/// The call that an op's functions receive: attributes, operand types, and the result types once
/// inferred.
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

/// The call that a node records.
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

using ResultTypes = InlineVector<TensorType, 1>;  ///< The types of the results.

/// What a vjp receives: the recorded call and the cotangents of its results.
struct VjpCall {
  const Node& node;
  std::span<const Tensor> operands;
  std::span<const Tensor> results;
  /// One for each result; an undefined Tensor is zero.
  std::span<const Tensor> cotangents;
  /// Which operands need a cotangent.
  std::span<const bool> needed;
  /// For ops with control flow: differentiates their bodies.
  const BodyDifferentiator* bodies = nullptr;

  template <class T>
  const T& as() const {
    return node.attributes_as<T>();
  }
  bool needs(std::size_t i) const { return needed[i]; }
};

/// What a batch rule receives: a call recorded for one member of a batch, and the batched operands.
/// An operand i with batched[i] has the batch as an additional dimension 0 of size `size`; all
/// members share the other operands, which are as recorded.
struct BatchCall {
  const Node& node;
  std::span<const Tensor> operands;
  /// At least one is true.
  std::span<const bool> batched;
  std::int64_t size = 0;
  /// The mesh axis that splits the batch dimension in shardings that the program specifies. Empty:
  /// the compiler decides.
  std::string_view mesh_axis = {};

  template <class T>
  const T& as() const {
    return node.attributes_as<T>();
  }
  /// The type of an operand for one member.
  const TensorType& member(std::size_t i) const { return node.operands()[i].type(); }
};

/// The dtypes that an element-wise op accepts.
enum class DTypeDomain : std::uint8_t {
  kNone,  ///< the op is not element-wise
  kAny,
  kOrdered,  ///< all but complex numbers
  kNumber,   ///< integers and floats
  kSigned,   ///< signed integers and floats
  kFloat,    ///< floats; the public functions convert integers and bools to f32 first
  kNumberOrComplex,
  kSignedOrComplex,
  kFloatOrComplex,  ///< integers and bools are converted as for kFloat
  kIntegerOrBool,   ///< bitwise ops
  kInteger,
  kBool,
};

/// The cost of computing the results of an op again instead of storing them.
enum class Recomputation : std::uint8_t {
  kNever,       ///< too expensive or not reproducible: products, random bits, exchanges
  kFree,        ///< nothing: the elements of an operand under another name, shape or type
  kArithmetic,  ///< a few instructions per element, or moving it
  kFunction,    ///< tens of instructions per element: divisions, roots, exp, tanh
  kSeries,      ///< hundreds of instructions per element: lgamma, zeta
};

/// For traits of all calls of an op.
inline bool every_call(const OpCall&) { return true; }

/// Facts about an op for code that treats several ops alike; such code never compares names.
/// Code that reads one op's attributes compares with its constant (ops/definition/op_table.h).
struct OpTraits {
  /// Every element of the result is an element of the one operand; of a scalar, the result is a
  /// splat. Splats and scalars enter manual axes and bodies, and follow their users to devices.
  bool repeats_elements = false;
  /// The derivative of a body chooses by it what to keep (autodiff/cheapest_residuals.h).
  /// element_wise::define replaces kNever with kArithmetic.
  Recomputation recomputation = Recomputation::kNever;
  /// Sums of products, the work of a matrix unit. `checkpoint` policies keep them, and reports
  /// attribute the permutations of an overlapped product to them.
  bool is_product = false;
  /// Derivatives treat its results as constants, even if its operands are not.
  bool stops_gradient = false;
  /// The program itself exchanges values between devices. Reports do not call this inserted.
  bool is_collective = false;
  /// The program itself specifies a sharding. Reports attribute reshards to it, not to the op that
  /// uses the value.
  bool marks_sharding = false;
  /// Calls that run unchanged on each shard of what their sharding rule passes through, but whose
  /// operands the partitioner would gather. Lowering writes them in a manual region. Unset: none.
  bool (*runs_on_shards)(const OpCall& call) = nullptr;
};

/// How the call of an op is read from StableHLO text, the reverse of OpDef::emit: an op in a text
/// has the sharding rule of this call.
struct OpReading {
  /// The StableHLO op that is read. Empty: no text is read as this op.
  std::string_view mnemonic = {};
  /// The attributes of the call; nullptr if the text is not one of this op. Unset if the op has no
  /// attributes.
  std::unique_ptr<const Attributes> (*attributes)(const OpText& text) = nullptr;
  /// The rule of a text's op, if it is not that of the call: the partitioner gathers what lowering
  /// would have written in a manual region (OpTraits::runs_on_shards). Unset: that of the call.
  ShardingRule (*sharding_rule)(const OpCall& call) = nullptr;
  /// The call has the dtypes of the text. False: they do not matter, and are taken to be f32,
  /// because the op accepts fewer of them than StableHLO.
  bool dtypes_as_written = false;
  /// The op takes only the first operands and the first result of the text, which repeats them, and
  /// appends initial values. 0: as in the text.
  std::size_t own_operands = 0;
};

/// The definition of one primitive. A value with static storage; nodes refer to it by address.
/// Element-wise ops are made by element_wise::define, which sets their common fields.
struct OpDef {
  /// The public name, in C++ and in all language bindings: that of the array API standard if it has
  /// one.
  std::string_view name = {};
  /// Operand names for messages and the reference page: `lhs, rhs`. A trailing `...` accepts any
  /// number.
  std::string_view operands = {};
  /// A paragraph for the reference page. Empty if the comment of the function says everything.
  std::string_view doc = {};
  /// One line of C++ that runs with `x` and `y` (f32[2,3]) in scope.
  std::string_view example = {};
  /// The dtypes that an element-wise op accepts.
  DTypeDomain domain = DTypeDomain::kNone;
  /// True if the results of an element-wise op are bools; otherwise they have the operands' dtype.
  bool gives_bools = false;
  /// Computes result types from operand types and attributes; throws through OpCall::fail.
  void (*infer)(const OpCall& call, ResultTypes& results) = nullptr;
  /// How the dimensions of operands and results correspond.
  ShardingRule (*sharding_rule)(const OpCall& call) = nullptr;
  /// For an element-wise op, its name in StableHLO, which also finds the sharding rule of an op in
  /// a text.
  std::string_view mnemonic = {};
  /// Writes the op as StableHLO.
  void (*emit)(const OpCall& call, OpEmission& out) = nullptr;
  /// Reads an op that is not element-wise from StableHLO.
  OpReading read = {};
  /// Records nodes that compute the operands' cotangents into `out` (one per operand; undefined
  /// means zero). nullptr, written kNotDifferentiable, for ops without a derivative.
  void (*vjp)(const VjpCall& call, std::span<Tensor> out) = nullptr;
  /// Records the call for all members of a batch at once; every result has the batch as dimension
  /// 0. nullptr: vmap of the op throws an error that names it. Never called for ops without
  /// operands.
  void (*batch)(const BatchCall& call, std::span<Tensor> results) = nullptr;
  /// The annotations of the results, for ops that change them: those that enter and leave manual
  /// axes, and collectives. Also checks what inference cannot see; throws through fail_at. nullptr
  /// for all other ops, which use the default rule in graph/annotate.h.
  std::shared_ptr<const Annotations> (*annotate)(const Node& node) = nullptr;
  /// With explicit axes: why these operand shardings give no result although the sharding rule has
  /// one; empty if they do give one. nullptr represents an operand without a sharding. Few ops need
  /// this.
  std::string (*sharding_conflict)(const OpCall& call,
                                   std::span<const Sharding* const> operands) = nullptr;
  /// The axes over which the call communicates, for ops whose sharding rule and shardings do not
  /// tell: collectives, and the entry to manual axes. nullptr for all others.
  std::vector<AxisMove> (*communicates)(const Node& node) = nullptr;
  /// Parses the printed attributes; nullptr for ops without attributes.
  Result<std::unique_ptr<const Attributes>> (*parse_attributes)(std::string_view text) = nullptr;
  OpTraits traits = {};
};

/// A value for OpDef::vjp: the op intentionally has no derivative.
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
