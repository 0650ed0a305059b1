// A program recorded for one member of a batch, recorded again for all of them at once: what vmap
// is made of.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// How a program is batched.
struct Batching {
  /// Of the batch: every batched value has it as dimension 0.
  std::int64_t size = 0;
  /// BatchCall::mesh_axis.
  std::string_view mesh_axis = {};
};

/// A stand-in for one member of `batched`, which has the batch as dimension 0: the same without it.
/// Programs are recorded from it; it has no value.
Tensor batch_member(const Tensor& batched, SourceLocation where);

/// `results`, which were recorded from `members`, for all members at once: nodes that depend on a
/// member are recorded again by the batch rules of their ops, with their own source lines. What
/// depends on none stays as it is.
/// @pre batched[i] is members[i] for all of them, with the batch as dimension 0
/// @post as many; each with the batch as dimension 0, or of its own rank: all members share it.
/// Undefined for an undefined one
/// @error unimplemented for an op without a batch rule, naming it and its line.
std::vector<Tensor> batch_program(std::span<const Tensor> results, std::span<const Tensor> members,
                                  std::span<const Tensor> batched, const Batching& batching);

/// What a function of one member's tensors gives for all members.
struct BatchedResults {
  /// Undefined where the function's are.
  std::vector<Tensor> values;
  /// Whether a value has the batch as dimension 0; else all members share it.
  std::vector<bool> batched;
};

/// `f`, a function of one member's tensors, on all members. operands[i] has the batch as dimension
/// 0 if batched[i], else all members share it.
/// @error as batch_program
BatchedResults batch_where_needed(
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
    std::span<const Tensor> operands, std::span<const bool> batched, const Batching& batching,
    SourceLocation where);

/// The same where every result is to have the batch as dimension 0: one that all members share is
/// repeated.
std::vector<Tensor> batch_call(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                               std::span<const Tensor> operands, std::span<const bool> batched,
                               const Batching& batching, SourceLocation where);

}  // namespace meshard
