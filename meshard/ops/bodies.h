// What ops with control flow share: their bodies are traced, checked and annotated here.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/batched_program.h"

namespace meshard {

/// Reads the field `bodies` of attributes.
Result<void> parse(std::string_view text, std::vector<Body>& bodies);

/// A body to be traced.
struct BodyToTrace {
  std::vector<BodyInput> inputs;
  BodyFunction function;
  /// Operands for the last of the inputs, of this body alone: as captured values, but known before.
  std::vector<Tensor> own = {};
};

/// The bodies of one call, and the operands of its node: those given, then each body's own and what
/// it captures.
struct TracedBodies {
  std::vector<Body> bodies;
  std::vector<Tensor> operands;
};

/// Traces the bodies of one call. Inside manual axes all operands and all results of the bodies
/// vary over the same axes: those that any of them varies over. The functions are called again
/// until that is settled.
/// @error what trace_body throws.
TracedBodies trace_bodies(std::span<const Tensor> given, std::span<const BodyToTrace> to_trace,
                          SourceLocation where);

/// The manual axes that the call of a node is inside of.
std::optional<ManualAxes> place_of(const Node& node);

/// Records the node; its results in order.
std::vector<Tensor> record_call(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                                std::span<const Tensor> operands, SourceLocation where);

/// Checks that operands from `first` on have the types of the parameters of body `which` from
/// `from` on, `count` of them.
/// @error through call.fail.
void check_parameters(const OpCall& call, const Body& body, std::string_view which,
                      std::size_t from, std::size_t first, std::size_t count);

/// The annotations of a node whose result i is like result i of `body`; results from `stacked` on
/// have one more dimension, in front.
std::shared_ptr<const Annotations> annotate_by_body(const Node& node, const Body& body,
                                                    std::size_t stacked);

/// A factor for each dimension; results and operands of one number belong together where `together`
/// says so, as (operand, result).
ShardingRule pass_through_rule(const OpCall& call,
                               std::span<const std::pair<std::size_t, std::size_t>> together);

/// The sharding of an array whose slices along a new first dimension lie so; and that of a slice.
Sharding stacked_sharding(const Sharding& slice);
Sharding slice_sharding(const Sharding& stacked);

/// What body `body` gives for all members of a batch, recorded here: `operands[i]` has the batch as
/// dimension 0 if batched[i].
BatchedResults batched_body(const BatchCall& call, const Body& body,
                            std::span<const Tensor> operands, const std::vector<bool>& batched);

/// Which of the values that a batched loop or branch gives have the batch as dimension 0. Found by
/// trying: the bodies are recorded until none gives a batched value where none was expected.
class BatchedValues {
 public:
  explicit BatchedValues(std::vector<bool> first) : batched_(std::move(first)) {}
  bool operator[](std::size_t i) const { return batched_[i]; }
  const std::vector<bool>& all() const { return batched_; }
  /// The values as they are expected: those that all members share are repeated where a batch is. A
  /// batched one that was not expected is taken note of.
  std::vector<Tensor> expected(BatchedResults results, std::int64_t size);
  void set(std::size_t i) { changed_ = changed_ || !batched_[i], batched_[i] = true; }
  bool is_changed() const { return changed_; }
  /// True if there were such since the last question: the bodies are to be recorded once more.
  bool have_changed() { return std::exchange(changed_, false); }

 private:
  std::vector<bool> batched_;
  bool changed_ = false;
};

/// What the attributes `batched`, of a call for all members, are to say in `extends`, if those of
/// the call for one member say `extends` (superseded.h).
template <class T>
std::string extends_batched(T batched, std::string_view extends) {
  std::string key;
  std::vector<std::size_t> counts = extended_counts(extends);
  std::vector<Body> bodies = batched.bodies;
  for (std::size_t i = counts.size(); i-- > 0;) {
    for (std::size_t b = 0; b < bodies.size(); ++b)
      batched.bodies[b] = with_first_results(bodies[b], counts[i]);
    batched.extends = key;
    key = extension_key(*make_attributes(batched), counts[i]);
  }
  return key;
}

/// Zeros as `primal` is, over explicit axes too.
Tensor zero_cotangent(const Tensor& primal);

}  // namespace meshard
