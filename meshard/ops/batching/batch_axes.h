// Which dimension of each tensor is the batch.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// A value: the batch dimension of a tensor, or `none` if all members share it. Negative dimensions
/// count from the last.
class BatchAxis {
 public:
  BatchAxis(int dimension) : dimension_(dimension) {}           // NOLINT: written {0, none}
  BatchAxis(std::int64_t dimension) : dimension_(dimension) {}  // NOLINT
  BatchAxis(NoneType) {}                                        // NOLINT

  bool is_none() const { return !dimension_; }
  /// @pre not none
  std::int64_t dimension() const { return *dimension_; }

 private:
  std::optional<std::int64_t> dimension_;
};

/// A value: a parameter type for batch axes, one for all tensors or a list.
class BatchAxes {
 public:
  BatchAxes(int dimension) : axes_{dimension} {}                      // NOLINT: a parameter
  BatchAxes(std::int64_t dimension) : axes_{dimension} {}             // NOLINT
  BatchAxes(NoneType) : axes_{none} {}                                // NOLINT
  BatchAxes(std::initializer_list<BatchAxis> axes) : axes_(axes) {}   // NOLINT
  BatchAxes(std::vector<BatchAxis> axes) : axes_(std::move(axes)) {}  // NOLINT

  std::size_t size() const { return axes_.size(); }
  const BatchAxis& operator[](std::size_t i) const { return axes_[i]; }

 private:
  std::vector<BatchAxis> axes_;
};

}  // namespace meshard
