// Batches a program: what was recorded for one member is recorded again for all members at once.
// Used by vmap.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The batch over which a program is recorded again.
struct Batching {
  /// The number of members; every batched value has the batch as dimension 0.
  std::int64_t size = 0;
  /// Passed to the batch rules as BatchCall::mesh_axis.
  std::string_view mesh_axis = {};
};

/// A placeholder for one member of `batched`: its type without dimension 0, the batch. Programs are
/// recorded from it; it has no value.
Tensor batch_member(const Tensor& batched, SourceLocation where);

/// Batches `results`, which were recorded from `members`, over all members.
/// The batch rule of each op records nodes that depend on a member again, with their own source
/// lines. Values that depend on no member are unchanged.
/// @pre batched[i] holds all members of members[i], with the batch as dimension 0
/// @post returns as many tensors. Each has the batch as dimension 0, or its own rank if all members
/// share it. Undefined results stay undefined
/// @error unimplemented for an op without a batch rule, naming it and its line.
std::vector<Tensor> batch_program(std::span<const Tensor> results, std::span<const Tensor> members,
                                  std::span<const Tensor> batched, const Batching& batching);

/// The results of a function of one member's tensors, for all members.
struct BatchedResults {
  /// Undefined where the function's results are.
  std::vector<Tensor> values;
  /// True if a value has the batch as dimension 0; false if all members share it.
  std::vector<bool> batched;
};

/// Applies `f`, a function of one member's tensors, to all members. operands[i] has the batch as
/// dimension 0 if batched[i]; otherwise all members share it.
/// @error as batch_program
BatchedResults batch_where_needed(
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
    std::span<const Tensor> operands, std::span<const bool> batched, const Batching& batching,
    SourceLocation where);

/// The same with the batch as dimension 0 of every result: a result that all members share is
/// repeated.
std::vector<Tensor> batch_call(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                               std::span<const Tensor> operands, std::span<const bool> batched,
                               const Batching& batching, SourceLocation where);

}  // namespace meshard
