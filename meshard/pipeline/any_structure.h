// Structures of tensors whose C++ types only their makers know.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "meshard/base/shared_value.h"
#include "meshard/graph/structure.h"

namespace meshard::internal {

template <class T>
inline constexpr char kStructureTag = 0;

/// Value type: a structure of tensors of any C++ type, such as what one stage of a pipeline hands
/// to the next.
struct AnyStructure {
  std::vector<Tensor> tensors;
  /// The structure with undefined tensors.
  std::shared_ptr<const void> prototype;
  /// Identifies its C++ type.
  const void* type = nullptr;

  template <class T>
  static AnyStructure of(T value) {
    AnyStructure made{structure::tensors(value), nullptr, &kStructureTag<T>};
    made.prototype = shared_value<T>(
        structure::with_tensors(std::move(value), std::vector<Tensor>(made.tensors.size())));
    return made;
  }
  template <class T>
  bool holds() const {
    return type == &kStructureTag<T>;
  }
  /// @pre holds<T>()
  template <class T>
  T as() const {
    return structure::with_tensors(*static_cast<const T*>(prototype.get()), tensors);
  }
  AnyStructure with(std::vector<Tensor> others) const {
    return {std::move(others), prototype, type};
  }
};

}  // namespace meshard::internal
