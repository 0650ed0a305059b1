// Tested in meshard/ops/rolling/roll_layers_test.cc.
#include "meshard/graph/unrolled_layers.h"

#include <algorithm>
#include <utility>

#include "meshard/base/cat.h"

namespace meshard {

std::string UnrolledLayers::to_string() const {
  return cat(where, ": ", layers, " layers of an nn::Layers are not one loop: ", why);
}

namespace internal {
namespace {
constinit thread_local UnrolledLayersScope* innermost_unrolled = nullptr;
}  // namespace

UnrolledLayersScope::UnrolledLayersScope() : outer_(std::exchange(innermost_unrolled, this)) {}
UnrolledLayersScope::~UnrolledLayersScope() { innermost_unrolled = outer_; }

void UnrolledLayersScope::add(const UnrolledLayers& layers) {
  UnrolledLayersScope* scope = innermost_unrolled;
  if (!scope) return;
  std::string line = cat(layers.where);
  bool is_known =
      std::any_of(scope->found_.begin(), scope->found_.end(),
                  [&](const UnrolledLayers& known) { return cat(known.where) == line; });
  if (!is_known) scope->found_.push_back(layers);
}

}  // namespace internal
}  // namespace meshard
