#include "meshard/runtime/logical_mesh.h"

namespace meshard {

HostArray get_logical_mesh(const Mesh& mesh) {
  Dimensions sizes;
  if (mesh.rows() > 1) sizes.push_back(mesh.rows());
  for (std::int64_t size : mesh.shape()) sizes.push_back(size);
  return HostArray::from_vector(mesh.device_ids().to_vector(), Shape(std::move(sizes)));
}

}  // namespace meshard
