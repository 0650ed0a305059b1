// Helpers for control-flow ops: tracing, checking, annotating and batching their bodies.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/batching/batched_program.h"

namespace meshard {

/// Parses the field `bodies` of attributes.
Result<void> parse(std::string_view text, std::vector<Body>& bodies);

/// A body to be traced.
struct BodyToTrace {
  std::vector<BodyInput> inputs;
  BodyFunction function;
  /// Operands of this body alone, for the last of its inputs. Like captured values, but known
  /// before tracing.
  std::vector<Tensor> own = {};
};

/// The arguments that a call passes to its bodies: all but the weakly typed numbers
/// (weak_number.h), which the bodies capture, because a captured number stays weakly typed.
std::vector<Tensor> passed_arguments(const std::vector<Tensor>& arguments);
/// A function of the passed arguments that calls `body`, a function of all of them.
BodyFunction of_passed_arguments(const BodyFunction& body, const std::vector<Tensor>& arguments);

/// The traced bodies of one call, and the operands of its node: the given ones, then for each body
/// its own and its captured values.
struct TracedBodies {
  std::vector<Body> bodies;
  std::vector<Tensor> operands;
};

/// Traces the bodies of one call. Inside manual axes, all operands and all results of the bodies
/// are widened to vary over the same axes: the union over all of them. The functions are called
/// again until this set no longer changes.
/// @error whatever trace_body throws.
TracedBodies trace_bodies(std::span<const Tensor> given, std::span<const BodyToTrace> to_trace,
                          SourceLocation where);

/// Traces the bodies of a loop, whose first operands and inputs are its carries. A carry that
/// begins as a weakly typed number is one in the bodies. If the last body returns it with a dtype
/// that takes the number's place (can_replace), the loop begins with the number in that dtype, and
/// the bodies are traced again, as in JAX.
/// @param given the operands; such numbers are converted
TracedBodies trace_loop(std::vector<Tensor>& given, std::size_t carries,
                        std::span<BodyToTrace> to_trace, SourceLocation where);

/// The manual axes of the region in which a node was recorded; nullopt outside of one.
std::optional<ManualAxes> place_of(const Node& node);

/// Records the node and returns its results in order.
/// @error as record, and a collective in a body that only some devices of its group would reach.
std::vector<Tensor> record_call(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                                std::span<const Tensor> operands, SourceLocation where);

/// Makes the function that is being recorded need a call whose bodies have effects (debug_print),
/// even if its results are not used. Outside of functions, computes it. Returns `results`.
std::vector<Tensor> with_effects_kept(std::vector<Tensor> results, SourceLocation where);

/// Checks that `count` operands match the types of the parameters of `body`. The operands start at
/// `first`, the parameters at `from`. `which` names the body in the message.
/// @error through call.fail.
void check_parameters(const OpCall& call, const Body& body, std::string_view which,
                      std::size_t from, std::size_t first, std::size_t count);

/// Annotates a node whose result i is sharded like result i of `body`. Results from index `stacked`
/// on have one more dimension, in front.
std::shared_ptr<const Annotations> annotate_by_body(const Node& node, const Body& body,
                                                    std::size_t stacked);

/// A sharding rule with one factor per dimension. `together` lists the pairs (operand, result) that
/// share their factors.
ShardingRule pass_through_rule(const OpCall& call,
                               std::span<const std::pair<std::size_t, std::size_t>> together);

/// The sharding of slices stacked along a new dimension 0; and the sharding of a slice of such an
/// array.
Sharding stacked_sharding(const Sharding& slice);
Sharding slice_sharding(const Sharding& stacked);

/// Records the results of `body` for all members of a batch. `operands[i]` has the batch as
/// dimension 0 if batched[i].
BatchedResults batched_body(const BatchCall& call, const Body& body,
                            std::span<const Tensor> operands, const std::vector<bool>& batched);

/// Tracks which values of a batched loop or branch have the batch as dimension 0. A fixed-point
/// iteration: the bodies are recorded again until none returns a batched value where an unbatched
/// one was expected.
class BatchedValues {
 public:
  explicit BatchedValues(std::vector<bool> first) : batched_(std::move(first)) {}
  bool operator[](std::size_t i) const { return batched_[i]; }
  const std::vector<bool>& all() const { return batched_; }
  /// The results in their expected form: unbatched values are repeated where a batch is expected. A
  /// batched value that was not expected is marked as batched from now on.
  std::vector<Tensor> expected(BatchedResults results, std::int64_t size);
  void set(std::size_t i) { changed_ = changed_ || !batched_[i], batched_[i] = true; }
  bool is_changed() const { return changed_; }
  /// True if values were marked since the last call: the bodies have to be recorded once more.
  bool have_changed() { return std::exchange(changed_, false); }

 private:
  std::vector<bool> batched_;
  bool changed_ = false;
};

/// The field `extends` for the attributes of a batched call. `extends` is the field of the call for
/// one member (superseded.h).
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

/// Zeros of the shape and dtype of `primal`, with its explicit sharding if it has one.
Tensor zero_cotangent(const Tensor& primal);

}  // namespace meshard
