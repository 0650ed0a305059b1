// Where a subject is placed, how its operands and results are split, and whether the value is
// right.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"
#include "tests/partial_manual/subjects.h"

namespace meshard::partial_manual {

/// A mesh of which some axes are manual, "x" among them.
struct Place {
  std::string name;
  std::vector<MeshAxis> axes;
  std::vector<std::string> manual;
  /// What may split a dimension.
  std::vector<AxisRef> automatic;
};
const std::vector<Place>& places();

/// What is around the call.
enum class Around { kRegion, kBranch, kLoop };
const char* to_string(Around around);

/// How the operands and the results of a call are split over the automatic axes.
struct Split {
  std::vector<PartitionSpec> operands;
  /// Of all results of the rank for which it was drawn.
  PartitionSpec result;
  std::string to_string() const;
};

/// Calls of one subject, which are compiled together.
struct Case {
  Subject subject;
  Place place;
  Around around = Around::kRegion;
  std::vector<Split> splits;
  std::string name(std::size_t split) const;
};

/// Every operand split alone in every way, all operands in the same way, and `more` drawn ones.
std::vector<Split> splits_of(const Subject& subject, const Place& place, std::size_t more,
                             std::uint64_t seed);

/// For each split: empty if the values are right, else what is wrong.
/// @error of the recording or of the compiler
std::vector<std::string> run(const Case& all);

}  // namespace meshard::partial_manual
