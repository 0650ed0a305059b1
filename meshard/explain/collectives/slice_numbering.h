// Device numbering of a module that was compiled for one of several slices.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module.h"
#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: the mesh positions of each slice. For a program over several slices, a TPU compiler
/// produces the program of one slice, which is the same for all: it numbers the slice's devices 0
/// to n-1, in mesh order, and reaches other slices by sends and receives (libtpu 0.0.51).
class SliceNumbering {
 public:
  using Groups = std::vector<std::vector<std::int64_t>>;

  /// None unless the module's device count equals that of each of several slices.
  static std::optional<SliceNumbering> of(const HloModule& module, const Mesh& mesh,
                                          const Topology& topology);

  /// Converts groups of a slice's device numbers to groups of mesh positions, for all slices. If
  /// there are no groups, all devices of a slice form one.
  /// @error out of range: a number that does not exist in the slice
  Result<Groups> positions(Groups groups) const;
  /// The same for the pairs of a permutation.
  Result<std::vector<std::pair<std::int64_t, std::int64_t>>> positions(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const;
  /// The groups of devices with the same number in different slices.
  Groups across() const;

 private:
  explicit SliceNumbering(Groups slices) : slices_(std::move(slices)) {}
  Result<std::int64_t> position(std::size_t slice, std::int64_t number) const;
  Groups slices_;
};

}  // namespace meshard
