#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/ops/bodies.h"

namespace meshard {

struct ScanAttributes {
  /// One: from carries, slices and captured values to carries and slices.
  std::vector<Body> bodies;
  std::int64_t length = 0;
  std::int64_t num_carries = 0;
  /// Operands behind the carries that are taken apart along their first dimension.
  std::int64_t num_sliced = 0;
  bool reverse = false;
  /// Steps for each turn of the loop that is written.
  std::int64_t unroll = 1;
  std::string extends;
  MESHARD_FIELDS(bodies, length, num_carries, num_sliced, reverse, unroll, extends)
};

/// What a scan of tensors runs over.
struct ScanCall {
  /// The values that go from one step to the next, before the first.
  std::vector<Tensor> carries;
  /// Of each, step i gets slice i along the first dimension.
  std::vector<Tensor> sliced;
  std::int64_t length = 0;
  /// From the last slice to the first; slices of the results stand where those of the operands do.
  bool reverse = false;
  /// Steps for each turn of the loop: it compiles to as many bodies one after the other, and what
  /// is left of `length` follows it. All of them: there is no loop.
  std::int64_t unroll = 1;
};

/// Runs `body` once for each slice: from the carries and the slices to the next carries and slices
/// of results. Gives the last carries, then the results, stacked along a new first dimension. The
/// structured form is scan() of composite/control_flow.h.
/// @error sliced operands without `length` slices; a body whose carries have other types than the
/// first ones.
std::vector<Tensor> scan_tensors(const ScanCall& call, const BodyFunction& body,
                                 SourceLocation where = SourceLocation::current());

}  // namespace meshard
