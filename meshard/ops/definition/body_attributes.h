// The attributes of the ops that run bodies: loops, branches and checkpoint.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/graph/body.h"

namespace meshard {

struct ScanAttributes {
  /// A single body: from carries, slices and captured values to carries and slices.
  std::vector<Body> bodies;
  std::int64_t length = 0;
  std::int64_t num_carries = 0;
  /// The number of operands after the carries that are sliced along their first dimension.
  std::int64_t num_sliced = 0;
  bool reverse = false;
  /// The number of steps per iteration of the loop in the compiled program.
  std::int64_t unroll = 1;
  std::string extends;
  MESHARD_FIELDS(bodies, length, num_carries, num_sliced, reverse, unroll, extends)
};

struct WhileAttributes {
  /// Two: from carries and captured values to whether to continue, and to the next carries.
  std::vector<Body> bodies;
  std::int64_t num_carries = 0;
  MESHARD_FIELDS(bodies, num_carries)
};

struct SwitchAttributes {
  /// One per case: from the arguments and captured values to the results.
  std::vector<Body> bodies;
  std::int64_t num_arguments = 0;
  std::string extends;
  MESHARD_FIELDS(bodies, num_arguments, extends)
};

struct CheckpointAttributes {
  /// A single body: from the arguments and captured values to the results.
  std::vector<Body> bodies;
  /// The ResidualPolicy, as text.
  std::string policy;
  std::string extends;
  MESHARD_FIELDS(bodies, policy, extends)
};

}  // namespace meshard
