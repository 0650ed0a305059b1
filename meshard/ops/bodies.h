// What ops with control flow share: their bodies are traced, checked and annotated here.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"

namespace meshard {

/// Reads the field `bodies` of attributes.
Result<void> parse(std::string_view text, std::vector<Body>& bodies);

/// A body to be traced.
struct BodyToTrace {
  std::vector<BodyInput> inputs;
  BodyFunction function;
};

/// The bodies of one call, and the operands of its node: those given, then what each body captures.
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
/// dimension 0 if batched[i]. So has every result.
std::vector<Tensor> batched_body(const BatchCall& call, const Body& body,
                                 std::span<const Tensor> operands,
                                 const std::vector<bool>& batched);

/// Zeros as `primal` is, over explicit axes too.
Tensor zero_cotangent(const Tensor& primal);

}  // namespace meshard
