// The device orders that JAX's mesh builders returned for TPUs, from tests/golden/jax.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace meshard {

/// A recorded mesh. For a hybrid mesh, `outer` has the sizes over slices.
struct RecordedMesh {
  std::string name, topology;
  std::vector<std::int64_t> shape, outer, ids;
};

/// All recorded meshes, except errors and meshes whose outer sizes count processes.
/// @param golden the folder tests/golden
inline std::vector<RecordedMesh> recorded_meshes(const std::string& golden) {
  std::vector<RecordedMesh> meshes;
  for (const char* part : {"/jax/part1/device_mesh.json", "/jax/part2/device_mesh.json"}) {
    std::ifstream file(golden + part);
    if (!file) throw std::runtime_error("cannot read " + golden + part);
    const nlohmann::json content = nlohmann::json::parse(file);
    for (const nlohmann::json& each : content.at("cases")) {
      if (!each.contains("ids") || each.value("process_is_granule", false)) continue;
      RecordedMesh mesh{
          each.at("id"), each.at("topology"), each.at("mesh_shape"), {}, each.at("ids")};
      if (each.contains("dcn_mesh_shape")) {
        mesh.outer = each.at("dcn_mesh_shape").get<std::vector<std::int64_t>>();
        for (std::size_t i = 0; i < mesh.shape.size(); ++i) mesh.shape[i] *= mesh.outer[i];
      }
      meshes.push_back(std::move(mesh));
    }
  }
  return meshes;
}

}  // namespace meshard
