// Helpers for tests of ops.
#pragma once
#include <string>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"

namespace meshard {

/// A tensor of zeros, for tests of types and text.
inline Tensor input(Shape shape, DType dtype = DType::f32) {
  return from_host(HostArray::zeros({dtype, std::move(shape)}));
}

/// The sharding rule of the node that made `tensor`, as text.
inline std::string rule_of(const Tensor& tensor) {
  const Node& node = *tensor.value().node();
  return node.op().sharding_rule(call_of(node)).to_string();
}

}  // namespace meshard
