// What a call recorded, to be recorded again.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "meshard/graph/attributes.h"
#include "meshard/graph/node.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A value: the nodes that a call recorded between its arguments and its results. They can be
/// recorded again for other arguments of the same types, without running the function and without
/// inferring types. It keeps none of the call's values but numbers.
class RepeatedCall {
 public:
  /// The call that has just made `results` of `arguments` outside of traces, and whose nodes have
  /// at least the id `first` (Node::next_id() before the call). Equal arguments of a later call
  /// must be equal in the same places.
  ///
  /// Empty if the nodes are not all that the results depend on: a result needs another value from
  /// before the call, or an array of the host (which may be of other elements next time); a part of
  /// the call has run already; or a value has annotations.
  static std::optional<RepeatedCall> of(std::span<const Value> arguments,
                                        std::span<const Value> results, std::uint64_t first);

  std::size_t num_arguments() const { return num_arguments_; }
  /// Records the nodes again, at the line `where`, for arguments with the types of the first ones.
  /// @pre as many as num_arguments(); this thread records no trace, and nothing is annotated
  std::vector<Tensor> record(std::span<const Value> arguments, SourceLocation where) const;

 private:
  struct Step {
    const OpDef* op = nullptr;
    std::shared_ptr<const Attributes> attributes;
    std::vector<std::uint32_t> operands;  // numbers of values
    std::vector<TensorType> results;
  };
  class Reader;

  // Values are numbered: the arguments, numbers_, then the results of each step.
  std::size_t num_arguments_ = 0;
  std::vector<Value> numbers_;  // stored values of rank 0
  std::vector<Step> steps_;     // in order of recording
  std::vector<std::uint32_t> results_;
};

}  // namespace meshard
