// Chains of mesh operations: each returns a mesh whose properties are consistent, or an Error.
#include <algorithm>
#include <numeric>
#include <vector>

#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/submeshes.h"
#include "meshard/stablehlo/shardy_text.h"
#include "tests/fuzz/byte_source.h"

namespace meshard {
namespace {

Mesh fuzz_root(ByteSource& bytes) {
  std::vector<MeshAxis> axes;
  std::int64_t size = 1;
  for (std::int64_t i = bytes.between(0, 4); i > 0; --i) {
    axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), bytes.between(1, 5)});
    size *= axes.back().size;
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(size));
  std::iota(ids.begin(), ids.end(), bytes.between(0, 3));
  switch (bytes.between(0, 3)) {
    case 0: break;
    case 1: std::reverse(ids.begin(), ids.end()); break;
    case 2:
      for (std::size_t i = ids.size(); i > 1; --i)
        std::swap(ids[i - 1], ids[static_cast<std::size_t>(bytes.between(0, 255)) % i]);
      break;
    default:
      for (std::int64_t& id : ids) id *= bytes.between(1, 3) + 1000;
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());  // may be too few: an error
  }
  return Mesh(axes, ids);
}

std::vector<std::string> some_axes(ByteSource& bytes, const Mesh& mesh) {
  std::vector<std::string> names;
  for (std::int64_t i = bytes.between(0, 3); i > 0 && mesh.rank() > 0; --i) {
    std::int64_t at = bytes.between(0, static_cast<std::int64_t>(mesh.rank()) - 1);
    names.push_back(mesh.axes()[static_cast<std::size_t>(at)].name);
  }
  return names;
}

std::vector<MeshAxis> some_parts(ByteSource& bytes) {
  std::vector<MeshAxis> parts;
  for (std::int64_t i = bytes.between(0, 3); i > 0; --i)
    parts.push_back({std::string(1, static_cast<char>('p' + parts.size())), bytes.between(1, 6)});
  return parts;
}

std::int64_t some_device(ByteSource& bytes, const Mesh& mesh) {
  DeviceIds ids = mesh.device_ids();
  return ids[bytes.between(0, 255) % ids.size()];
}

Mesh fuzz_operation(ByteSource& bytes, const std::vector<Mesh>& live) {
  const Mesh& mesh = live[static_cast<std::size_t>(bytes.between(0, 255)) % live.size()];
  std::vector<std::string> names = some_axes(bytes, mesh);
  std::string fresh(1, static_cast<char>('k' + bytes.between(0, 3)));
  switch (bytes.between(0, 13)) {
    case 0: return mesh.slice(names);
    case 1: return mesh.permute(names);
    case 2: return mesh.flatten(fresh);
    case 3: return mesh.flatten(names, fresh);
    case 4: return mesh.unflatten(names.empty() ? "a" : names[0], some_parts(bytes));
    case 5: return mesh.reshape(some_parts(bytes));
    case 6: return mesh.rename({{names.empty() ? "a" : names[0], fresh}});
    case 7: return mesh.squeeze(names);
    case 8: return mesh.unsqueeze(fresh, static_cast<std::size_t>(bytes.between(0, 4)));
    case 9:
      return concatenate(
          {mesh, live[static_cast<std::size_t>(bytes.between(0, 255)) % live.size()]});
    case 10: return mesh.submesh(names, some_device(bytes, mesh)).value();
    case 11: return mesh.root().slice(fresh);
    case 12: return mesh.as_root();
    default: {
      Submeshes all = mesh.submeshes(names);
      return all[bytes.between(0, 255) % all.size()];
    }
  }
}

void check_mesh(const Mesh& mesh, const std::string& done) {
  DeviceIds ids = mesh.device_ids();
  fuzz_check(ids.size() == mesh.size() * mesh.rows(), "rows * size = devices", done);
  Layout layout = mesh.layout();
  for (std::int64_t i = 0; i < ids.size(); i += 1 + ids.size() / 40) {
    std::int64_t id = ids[i], row = i / mesh.size(), position = i % mesh.size();
    fuzz_check(mesh.position(id) == position && mesh.row(id) == row, "position and row", done);
    fuzz_check(*mesh.coordinate(id) == mesh.coordinate_at(position), "coordinate", done);
    fuzz_check(mesh.device_id(*mesh.coordinate(id), id) == id, "device_id(coordinate(id))", done);
    fuzz_check(mesh.ranks(row)[position] == id, "ranks(row)", done);
    if (mesh.is_root())
      fuzz_check(mesh.rank_map()[layout(position)] == id, "rank_map(layout(position))", done);
    for (std::size_t axis = 0; axis < mesh.rank(); ++axis) {
      const std::string& name = mesh.axes()[axis].name;
      if (mesh.find_axis(name) != axis) continue;  // a unit axis, named again
      DeviceGroup group = *mesh.group({name}, id);
      fuzz_check(group.size() == mesh.shape()[axis], "group size", done);
      fuzz_check(group.local_rank(id) == (*mesh.coordinate(id))[axis], "local rank", done);
      fuzz_check(group.ranks().sorted()[*group.sorted_local_rank(id)] == id, "sorted rank", done);
      fuzz_check(mesh.groups({name}).of(id)->is_same_object(group), "groups.of", done);
    }
  }
  fuzz_check(overlap(mesh, mesh.root()) == Overlap::kSame ||
                 overlap(mesh, mesh.root()) == Overlap::kFirstInSecond,
             "overlap with the root", done);
  fuzz_check(mesh.is_submesh_of(mesh.root()), "is_submesh_of(root)", done);
  bool repeated = false;
  for (std::size_t axis = 0; axis < mesh.rank(); ++axis)
    repeated = repeated || mesh.find_axis(mesh.axes()[axis].name) != axis;
  if (repeated) return;
  fuzz_check(parse_shardy_mesh(shardy_text(mesh)).ok(), "parse(shardy_text)", done);
  Result<Mesh> parsed = Mesh::parse(mesh.to_string());
  fuzz_check(parsed.ok() && parsed->to_string() == mesh.to_string(), "print(parse(print))", done);
  fuzz_check(*parsed == mesh && parsed->hash() == mesh.hash(), "parse(print)", done);
}

}  // namespace
}  // namespace meshard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  ByteSource bytes(data, size);
  try {
    std::vector<Mesh> live = {fuzz_root(bytes)};
    std::string done = live[0].to_string();
    for (int step = 0; step < 12 && !bytes.empty(); ++step) {
      try {
        live.push_back(fuzz_operation(bytes, live));
      } catch (const InternalError&) {
        throw;  // a bug in meshard
      } catch (const Error&) {
        continue;
      }
      done += cat("\n  ", live.back());
      check_mesh(live.back(), done);
    }
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {  // the root is invalid
  }
  return 0;
}
