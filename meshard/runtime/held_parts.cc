#include "meshard/runtime/held_parts.h"

#include <algorithm>
#include <map>

#include "meshard/graph/evaluator.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/tiles.h"

namespace meshard {

std::vector<HeldPart> held_parts(const Tensor& tensor, SourceLocation where) {
  compute(std::span(&tensor, 1), where);
  const Storage& storage = computed_storage(tensor.value(), where);
  const Shape& shape = tensor.shape();
  const Sharding* sharding =
      storage.kind() == Storage::Kind::kDevice ? storage.sharding() : nullptr;
  if (!sharding || shape.size() == 0) return {{whole_box(shape), {0}}};
  const Mesh& mesh = sharding->mesh();
  const pjrt::Client& client = process_runtime().platforms.client(mesh, where);
  std::map<std::int64_t, HeldPart> by_tile;
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    HeldPart& part = by_tile[tile_number(*sharding, p)];
    if (part.processes.empty()) part.box = box_of(*sharding, shape, p);
    part.processes.push_back(device_of(client, mesh.device_id(p), where).process_index());
  }
  std::vector<HeldPart> parts;
  for (auto& [tile, part] : by_tile) {
    if (box_shape(part.box).size() == 0) continue;
    std::sort(part.processes.begin(), part.processes.end());
    part.processes.erase(std::unique(part.processes.begin(), part.processes.end()),
                         part.processes.end());
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace meshard
