#include "meshard/runtime/check_devices.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/mesh/device_type.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/runtime.h"

namespace meshard {
namespace {

constexpr std::size_t kMostListed = 8;

std::string listed(const std::vector<std::int64_t>& ids) {
  std::size_t shown = std::min(ids.size(), kMostListed);
  std::string out = join(std::span(ids).first(shown), ", ");
  if (shown < ids.size()) append(out, cat(" and ", ids.size() - shown, " more"));
  return out;
}

std::vector<std::int64_t> ids_of(const pjrt::Client& client) {
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < client.device_count(); ++i) ids.push_back(client.device(i).id());
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

void check_devices(const Mesh& mesh, SourceLocation where) {
  const pjrt::Client& client = runtime_client(mesh, where);
  std::vector<std::int64_t> there = ids_of(client), missing;
  RankMap ids = mesh.base().rank_map();
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    if (!std::binary_search(there.begin(), there.end(), ids[i])) missing.push_back(ids[i]);
    if (missing.size() > there.size() + kMostListed) break;  // enough for the message
  }
  if (!missing.empty())
    throw Error(ErrorCode::kNotFound,
                cat("[runtime] ", mesh, " has devices that do not exist: ", listed(missing),
                    "; there are ", there.size(), " ", client.name(), " devices: ", listed(there)),
                where);
}

Mesh init_device_mesh(std::string device_type, IntView shape, const MaybeNames& names,
                      SourceLocation where) {
  std::vector<MeshAxis> axes = mesh_axes(shape, names, where);
  check_mesh_axes(axes, where);
  const pjrt::Client& client = runtime_client(device_type, where);
  std::vector<std::int64_t> there = ids_of(client);
  std::int64_t wanted = IntTuple::flat(shape).product();
  if (wanted > std::ssize(there))
    throw_invalid(where, "[runtime] a mesh of ", join(shape, " x "), " needs ", wanted,
                  " devices; there are ", there.size(), " of type ", client.name());
  there.resize(static_cast<std::size_t>(wanted));
  return Mesh(std::move(axes), std::move(there), where)
      .with_device_type(std::move(device_type), where);
}

}  // namespace meshard
