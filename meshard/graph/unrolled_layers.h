// Layers of an nn::Layers that stay as recorded, and why.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/source_location.h"

namespace meshard {

/// A value: the layers of an nn::Layers that a plain loop recorded and that no loop of the program
/// can compute.
struct UnrolledLayers {
  std::int64_t layers = 0;
  std::string why;
  /// The first node of the first layer.
  SourceLocation where;

  /// `model.cc:42: 12 layers of an nn::Layers are not one loop: layer 3 records 40 operations,
  /// layer 1 records 39`
  std::string to_string() const;
};

namespace internal {

/// While alive, collects the layers that this thread's recordings leave unrolled.
class UnrolledLayersScope {
 public:
  UnrolledLayersScope();
  ~UnrolledLayersScope();
  UnrolledLayersScope(const UnrolledLayersScope&) = delete;
  UnrolledLayersScope& operator=(const UnrolledLayersScope&) = delete;

  /// Adds to the innermost scope; does nothing outside of one. An entry that is known is not added
  /// again: nested functions see the same layers.
  static void add(const UnrolledLayers& layers);
  const std::vector<UnrolledLayers>& found() const { return found_; }

 private:
  UnrolledLayersScope* outer_;
  std::vector<UnrolledLayers> found_;
};

}  // namespace internal
}  // namespace meshard
