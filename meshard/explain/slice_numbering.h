// How a module that was compiled for one of several slices numbers devices.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/hlo_module.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// A value: the mesh positions of each slice. A TPU compiler splits a program over several slices
/// into the part of one of them, which is the same for all: it numbers the slice's devices 0 to
/// n-1, in mesh order, and reaches the other slices by sends and receives (libtpu 0.0.51).
class SliceNumbering {
 public:
  using Groups = std::vector<std::vector<std::int64_t>>;

  /// None unless the module is for as many devices as each of several slices has.
  static std::optional<SliceNumbering> of(const pjrt::HloModule& module, const Mesh& mesh,
                                          const Topology& topology);

  /// Groups of a slice's numbers as groups of mesh positions, those of all slices. No group: all
  /// devices of a slice.
  /// @error out of range: a number that the slice does not have
  Result<Groups> positions(Groups groups) const;
  /// The same for pairs of a permutation.
  Result<std::vector<std::pair<std::int64_t, std::int64_t>>> positions(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const;
  /// The groups of devices that have the same number in their slices.
  Groups across() const;

 private:
  explicit SliceNumbering(Groups slices) : slices_(std::move(slices)) {}
  Result<std::int64_t> position(std::size_t slice, std::int64_t number) const;
  Groups slices_;
};

}  // namespace meshard
