// Row-major arrays of integers as nested JSON arrays.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace meshard::conformance {

/// A compact row-major list as nested arrays. Without dimensions, the value itself.
nlohmann::json nested(std::span<const std::int64_t> data, std::span<const std::int64_t> shape);

/// The sizes and elements of nested arrays; a number has no sizes. A value type.
struct FlatArray {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> data;
};
FlatArray flat(const nlohmann::json& nested);

}  // namespace meshard::conformance
