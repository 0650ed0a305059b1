// The type and the sharding of an array on devices.
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: a tensor type and, for a value over a mesh, its sharding. Immutable; copies share one
/// state, so that a program's results cost no copies of types, and are recognized as its arguments
/// without a comparison.
class ShardedType {
 public:
  ShardedType(TensorType type, std::optional<Sharding> sharding)
      : state_(std::make_shared<const State>(State{std::move(type), std::move(sharding)})) {}

  const TensorType& type() const { return state_->type; }
  /// nullptr for a value without a mesh.
  const Sharding* sharding() const { return state_->sharding ? &*state_->sharding : nullptr; }
  /// True if one is a copy of the other, so that they are equal. A check without a look at either.
  bool is_copy_of(const ShardedType& other) const { return state_ == other.state_; }
  friend bool operator==(const ShardedType& a, const ShardedType& b) {
    return a.is_copy_of(b) || (a.type() == b.type() && a.state_->sharding == b.state_->sharding);
  }

 private:
  struct State {
    TensorType type;
    std::optional<Sharding> sharding;
  };
  std::shared_ptr<const State> state_;
};

}  // namespace meshard
