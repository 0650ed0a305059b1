#include "tools/conformance/txla/inputs.h"

#include <numeric>

#include "meshard/base/cat.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

AxisRef axis_of(const Json& entry, const Mesh& mesh) {
  if (entry.is_string()) return AxisRef(entry.get<std::string>());
  auto index = entry.get<std::int64_t>();
  if (index < 0 || index >= static_cast<std::int64_t>(mesh.rank()))
    throw_invalid(SourceLocation{}, "axis ", index, " of ", mesh);
  return AxisRef(mesh.axes()[static_cast<std::size_t>(index)].name);
}

/// first, first + 1, ...
std::vector<std::int64_t> counted(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

Shape shape_of(const Json& sizes) { return Shape(sizes.get<std::vector<std::int64_t>>()); }

DType dtype_named(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float32", DType::f32}, {"float64", DType::f64},   {"float16", DType::f16},
      {"bool", DType::bool_},  {"bfloat16", DType::bf16}, {"int8", DType::i8},
      {"int16", DType::i16},   {"int32", DType::i32},     {"int64", DType::i64},
      {"uint8", DType::u8},    {"uint16", DType::u16},    {"uint32", DType::u32},
      {"uint64", DType::u64}};
  for (const auto& [known, dtype] : kNames)
    if (known == name) return dtype;
  throw Error(ErrorCode::kUnimplemented, cat("no dtype is called ", name));
}

Mesh mesh_of(const Json& fields) {
  const Json& names = fields.at("axis_names");
  const Json& sizes = fields.at("mesh_shape");
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({names.is_null() ? cat("axis_", i) : names.at(i).get<std::string>(),
                    sizes[i].get<std::int64_t>()});
  return Mesh(std::move(axes), fields.at("device_ids").get<std::vector<std::int64_t>>());
}

PartitionSpec spec_of(const Json& entries, const Mesh& mesh) {
  std::vector<DimensionSpec> dimensions;
  for (const Json& entry : entries) {
    AxisList axes;
    if (entry.is_array())
      for (const Json& axis : entry) axes.push_back(axis_of(axis, mesh));
    else if (!entry.is_null())
      axes.push_back(axis_of(entry, mesh));
    dimensions.emplace_back(std::move(axes));
  }
  return PartitionSpec(std::move(dimensions));
}

HostArray host_array_of(const Json& data, const Shape& shape, DType dtype) {
  if (data.is_array())
    return HostArray::from_vector(data.get<std::vector<double>>(), shape).astype(dtype);
  std::int64_t first = data.is_object() ? data.at("iota").get<std::int64_t>() : 1;
  return HostArray::from_vector(counted(first, shape.size()), shape).astype(dtype);
}

Json numbers_of(const HostArray& array) { return array.astype(DType::f64).to_vector<double>(); }

}  // namespace meshard::conformance
