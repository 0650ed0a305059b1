#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/body_function.h"

namespace meshard {

/// The operands and options of scan_tensors().
struct ScanCall {
  /// The initial carries: values that each step passes on to the next.
  std::vector<Tensor> carries;
  /// Step i receives slice i of each along the first dimension.
  std::vector<Tensor> sliced;
  std::int64_t length = 0;
  /// Runs from the last slice to the first; slices of the results keep the positions of the
  /// operands' slices. Default: false.
  bool reverse = false;
  /// Steps per iteration of the compiled loop, default 1: the loop contains as many copies of the
  /// body, and the remaining steps follow it. With unroll >= `length` no loop is emitted.
  std::int64_t unroll = 1;
};

/// Runs `body` once per slice: from the carries and the slices to the next carries and slices of
/// results. Returns the last carries, then the results, stacked along a new first dimension. The
/// structured form is scan() of composite/control_flow.h.
/// @error sliced operands that do not have `length` slices; a body that changes the types of the
/// carries.
std::vector<Tensor> scan_tensors(const ScanCall& call, const BodyFunction& body,
                                 SourceLocation where = SourceLocation::current());

}  // namespace meshard
