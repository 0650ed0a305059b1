// Structures of tensors whose C++ types only their makers know.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/base/shared_value.h"
#include "meshard/graph/structure_match.h"

namespace meshard::internal {

template <class T>
inline constexpr char kStructureTag = 0;

/// True if two values of type T differ at most in their tensors: they have the same lengths and
/// keys, the same numbers, and equal values of Static.
template <class T>
bool equal_around_tensors(const void* a, const void* b) {
  const T &one = *static_cast<const T*>(a), &other = *static_cast<const T*>(b);
  return structure::internal::same_form(one, other) &&
         structure::constant_difference(one, other).empty();
}

/// Value type: a structure of tensors of any C++ type, such as what one stage of a pipeline hands
/// to the next.
struct AnyStructure {
  std::vector<Tensor> tensors;
  /// The structure with undefined tensors.
  std::shared_ptr<const void> prototype;
  /// Identifies its C++ type.
  const void* type = nullptr;
  /// equal_around_tensors() of that type.
  bool (*is_equal)(const void*, const void*) = nullptr;

  template <class T>
  static AnyStructure of(T value) {
    AnyStructure made{structure::tensors(value), nullptr, &kStructureTag<T>,
                      &equal_around_tensors<T>};
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
    return {std::move(others), prototype, type, is_equal};
  }
  /// True if the two differ at most in their tensors.
  bool same_around_tensors(const AnyStructure& other) const {
    return type == other.type &&
           (prototype == other.prototype || is_equal(prototype.get(), other.prototype.get()));
  }
};

}  // namespace meshard::internal
