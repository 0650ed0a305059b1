#include "tools/conformance/txla/inputs.h"

#include <numeric>

#include "meshard/base/cat.h"
#include "tools/conformance/txla/error_category.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

Json axis_index_of(const Json& entry, const Mesh& mesh) {
  if (entry.is_string()) return mesh.axis_index(entry.get<std::string>());
  if (entry.is_number_integer()) return entry;
  throw ReferenceError(entry.is_array() ? "spec_nested_tuple" : "spec_bad_element_type");
}

AxisRef axis_of(const Json& index, const Mesh& mesh) {
  auto at = index.get<std::int64_t>();
  if (at < 0 || at >= static_cast<std::int64_t>(mesh.rank()))
    throw ReferenceError("spec_axis_out_of_range");
  return AxisRef(mesh.axes()[static_cast<std::size_t>(at)].name);
}

/// first, first + 1, ...
std::vector<std::int64_t> counted(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

Shape shape_of(const Json& sizes) { return Shape(sizes.get<std::vector<std::int64_t>>()); }

Json list_of(const Shape& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

DType dtype_named(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float32", DType::f32}, {"float64", DType::f64},   {"float16", DType::f16},
      {"bool", DType::bool_},  {"bfloat16", DType::bf16}, {"int8", DType::i8},
      {"int16", DType::i16},   {"int32", DType::i32},     {"int64", DType::i64},
      {"uint8", DType::u8},    {"uint16", DType::u16},    {"uint32", DType::u32},
      {"uint64", DType::u64}};
  for (const auto& [known, dtype] : kNames)
    if (known == name) return dtype;
  throw Error(ErrorCode::kUnimplemented, cat("unknown dtype ", name));
}

Mesh mesh_of(const Json& fields) {
  Json names = fields.value("axis_names", Json());
  const Json& sizes = fields.at("mesh_shape");
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({names.is_null() ? cat("axis_", i) : names.at(i).get<std::string>(),
                    sizes[i].get<std::int64_t>()});
  if (!fields.contains("device_ids")) return Mesh(std::move(axes));
  return Mesh(std::move(axes), fields.at("device_ids").get<std::vector<std::int64_t>>());
}

Json translated_spec(const Json& entries, const Mesh& mesh) {
  Json translated = Json::array();
  for (const Json& entry : entries) {
    if (entry.is_null()) {
      translated.push_back(nullptr);
    } else if (entry.is_array()) {
      Json axes = Json::array();
      for (const Json& axis : entry) axes.push_back(axis_index_of(axis, mesh));
      translated.push_back(axes);
    } else {
      translated.push_back(axis_index_of(entry, mesh));
    }
  }
  return translated;
}

PartitionSpec spec_of(const Json& entries, const Mesh& mesh) {
  std::vector<DimensionSpec> dimensions;
  for (const Json& entry : translated_spec(entries, mesh)) {
    AxisList axes;
    if (entry.is_array())
      for (const Json& axis : entry) axes.push_back(axis_of(axis, mesh));
    else if (!entry.is_null())
      axes.push_back(axis_of(entry, mesh));
    dimensions.emplace_back(std::move(axes));
  }
  return PartitionSpec(std::move(dimensions));
}

Sharding sharding_of(const Json& fields) {
  Mesh mesh = mesh_of(fields);
  const Json& entries = fields.at("partition_spec");
  PartitionSpec spec = spec_of(entries, mesh);
  std::vector<DimensionSpec> dimensions = spec.dimensions();
  std::vector<MeshAxis> axes(mesh.axes().begin(), mesh.axes().end());
  bool splits = false;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    splits = splits || !dimensions[d].axes().empty();
    if (entries[d] != Json::array()) continue;
    axes.push_back({cat("unit_", d), 1});
    dimensions[d] = DimensionSpec(axes.back().name);
  }
  if (axes.size() == mesh.rank()) return Sharding(mesh, spec);
  if (splits) throw ReferenceError("spec_empty_tuple");
  return Sharding(Mesh(axes, mesh.device_ids().rank_map()), PartitionSpec(std::move(dimensions)));
}

HostArray host_array_of(const Json& data, const Shape& shape, DType dtype) {
  if (data.is_array())
    return HostArray::from_vector(data.get<std::vector<double>>(), shape).astype(dtype);
  std::int64_t first = data.is_object() ? data.at("iota").get<std::int64_t>() : 1;
  return HostArray::from_vector(counted(first, shape.size()), shape).astype(dtype);
}

Json numbers_of(const HostArray& array) { return array.astype(DType::f64).to_vector<double>(); }

}  // namespace meshard::conformance
