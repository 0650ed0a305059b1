// Shared values with an erased type.
#pragma once
#include <memory>
#include <utility>

namespace meshard {

/// A shared, immutable copy of `value`. Like std::make_shared<const T>, which costs far more to
/// compile for each T: a lambda's type is used once.
template <class T>
std::shared_ptr<const void> shared_value(T value) {
  void (*destroy)(const void*) = [](const void* kept) { delete static_cast<const T*>(kept); };
  return std::shared_ptr<const void>(static_cast<const void*>(new T(std::move(value))), destroy);
}

}  // namespace meshard
