#include "tools/conformance/jax/inputs.h"

#include <fstream>
#include <map>

namespace meshard::conformance {
namespace {

/// `meta` of named_sharding.json in this folder; read only once.
const Json& named_sharding_meta(const std::filesystem::path& folder) {
  static std::map<std::filesystem::path, Json> read;
  auto [found, is_new] = read.try_emplace(folder);
  if (is_new) {
    std::ifstream file(folder / "named_sharding.json");
    found->second = Json::parse(file).at("meta");
  }
  return found->second;
}

}  // namespace

Mesh jax_mesh(const std::string& name, const GoldenFile& file) {
  bool has_meshes = file.meta.is_object() && file.meta.contains("meshes");
  const Json& meta = has_meshes ? file.meta : named_sharding_meta(file.path.parent_path());
  const Json& mesh = meta.at("meshes").at(name);
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < mesh.at("axis_names").size(); ++i)
    axes.push_back({mesh.at("axis_names")[i], mesh.at("axis_sizes")[i]});
  return Mesh(std::move(axes), mesh.at("device_ids").get<std::vector<std::int64_t>>());
}

PartitionSpec jax_spec(const Json& entries) {
  std::vector<DimensionSpec> dimensions;
  for (const Json& entry : entries) {
    AxisList axes;
    if (entry.is_array())
      for (const Json& axis : entry) axes.push_back(AxisRef(axis.get<std::string>()));
    else if (entry.is_string() && entry != "*")
      axes.push_back(AxisRef(entry.get<std::string>()));
    dimensions.emplace_back(std::move(axes), /*is_open=*/entry == "*");
  }
  return PartitionSpec(std::move(dimensions));
}

}  // namespace meshard::conformance
