// Shared by tests on real devices.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "meshard/meshard.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard {

/// Fixture that skips the test, with a message, if no plugin is installed.
using OnDevices = OnPlugin;

/// first, first + 1, ... in row-major order.
inline Tensor counting(Shape shape, float first = 0,
                       SourceLocation where = SourceLocation::current()) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (float& value : values) value = first++;
  return from_host(std::move(values), std::move(shape), where);
}

/// The numbers first, first + step, ..., first + (count - 1) * step.
inline std::vector<float> numbers(std::size_t count, float first = 0, float step = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

/// All devices, as 2 rows of 4.
inline const Mesh& grid() {
  static const Mesh mesh({{"x", 2}, {"y", 4}});
  return mesh;
}

/// Computes a tensor, and returns its array on devices.
inline const DeviceArray& device_array(const Tensor& tensor) {
  compute({tensor});
  Storage* storage = tensor.value().storage();
  if (storage->kind() != Storage::Kind::kDevice)
    throw InternalError("not on devices: " + storage->placement());
  return static_cast<const DeviceArray&>(*storage);
}

}  // namespace meshard
