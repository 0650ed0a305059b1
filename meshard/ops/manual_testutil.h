// Helpers for tests of collectives.
#pragma once
#include <string>

#include "meshard/graph/annotation.h"
#include "meshard/ops/manual_values.h"
#include "meshard/ops/op_testutil.h"

namespace meshard {

/// A local value of `shape` inside all axes of mesh<x=2, y=2>, which varies over "x".
inline Tensor local_input(Shape shape, DType dtype = DType::f32) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  Tensor full = input(shape.with(0, 2 * shape[0]), dtype);
  return full_to_shard(full, Sharding(mesh, P("x")), AxisSet::all(mesh));
}

/// The axes that a local value varies over, such as `{"x"}`; `full` for a full value.
inline std::string varying(const Tensor& tensor) {
  const ManualAxes* place = manual_axes(tensor.value());
  return place ? place->varying.to_string(place->mesh) : "full";
}

}  // namespace meshard
