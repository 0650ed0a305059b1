#include "meshard/lowering/module_boundary.h"

#include <algorithm>
#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/sharding/tile_assignment.h"
#include "meshard/stablehlo/shardy_text.h"

namespace meshard {
namespace {

Error invalid_boundary(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

// Drops priorities: `p1` after a dimension affects the order of propagation, not the sharding.
std::string without_priorities(std::string_view sharding) {
  std::string out;
  for (std::size_t i = 0; i < sharding.size(); ++i) {
    out += sharding[i];
    if (sharding[i] != '}') continue;
    if (i + 1 < sharding.size() && sharding[i + 1] == 'p')
      for (++i; i + 1 < sharding.size() && sharding[i + 1] >= '0' && sharding[i + 1] <= '9';) ++i;
  }
  return out;
}

// The number of devices in tile assignments, `{devices=[4,2]<=[8]}`; 0: none.
std::int64_t devices_in_tiles(std::string_view sharding) {
  constexpr std::string_view kBegin = "devices=[";
  std::size_t begin = sharding.find(kBegin);
  if (begin == std::string_view::npos) return 0;
  std::int64_t devices = 1, size = 0;
  const char* at = sharding.data() + begin + kBegin.size();
  const char* end = sharding.data() + sharding.size();
  while (true) {
    auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > (1 << 30) || devices > (1 << 30)) return 0;
    devices *= size;
    if (next == end || *next != ',') return devices;
    at = next + 1;
  }
}

std::vector<MeshAxis> axes_of(const stablehlo::ModuleMesh& mesh) {
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : mesh.axes) axes.push_back({name, size});
  return axes;
}

bool has_axes_of(const Mesh& mesh, const stablehlo::ModuleMesh& other) {
  return std::ranges::equal(mesh.axes(), other.axes, [](const MeshAxis& a, const auto& b) {
    return a.name == b.first && a.size == b.second;
  });
}

// The mesh that a sharding names: `@mesh` of `#sdy.sharding<@mesh, [...]>`; null for a mesh that is
// written out.
const stablehlo::ModuleMesh* named_mesh_of(const stablehlo::ModuleFacts& module,
                                           std::string_view sharding) {
  std::size_t begin = sharding.find("<@");
  if (begin == std::string_view::npos) return nullptr;
  std::string_view name = sharding.substr(begin + 2);
  name = name.substr(0, name.find_first_of(",> "));
  if (name.size() > 1 && name.front() == '"') name = name.substr(1, name.size() - 2);
  auto found = std::ranges::find(module.meshes, name, &stablehlo::ModuleMesh::name);
  return found == module.meshes.end() ? nullptr : &*found;
}

// Whether two meshes have the same axes, whatever their kinds, and the same devices in order.
bool same_axes_and_devices(const Mesh& a, const Mesh& b) {
  const auto same_axis = [](const MeshAxis& x, const MeshAxis& y) {
    return x.name == y.name && x.size == y.size;
  };
  return std::ranges::equal(a.axes(), b.axes(), same_axis) && a.rank_map() == b.rank_map();
}

// The mesh that numbers the module's devices.
Result<Mesh> numbering_on(const Mesh& devices, const stablehlo::ModuleMesh* own) {
  if (!own || has_axes_of(devices, *own)) return devices;
  return caught([&] {
    std::vector<std::int64_t> ids;
    for (std::int64_t id : devices.device_ids()) ids.push_back(id);
    return Mesh(axes_of(*own), std::move(ids)).with_device_type(devices.device_type());
  });
}

Result<void> add_boundary(const stablehlo::ModuleFacts& module,
                          const std::vector<stablehlo::ModuleValue>& values, std::string_view role,
                          const std::vector<Mesh>& meshes, std::vector<LoweredValue>& to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Result<TensorType> type = module_tensor_type(values[i].type);
    if (!type.ok()) return type.error().with_note(cat("in ", role, " ", i, " ", values[i].name));
    LoweredValue value{*type, *type, std::nullopt};
    if (!meshes.empty()) {
      value.sharding = sharding_in_module(module, values[i], *type, meshes);
      if (value.sharding && !value.sharding->is_even(type->shape.sizes())) value.sharding.reset();
      value.is_specified_otherwise = !value.sharding && values[i].has_closed_sharding();
    }
    to.push_back(std::move(value));
  }
  return {};
}

}  // namespace

Result<TensorType> module_tensor_type(std::string_view text,
                                      FunctionRef<Result<DType>(std::string_view)> element_type) {
  constexpr std::string_view kBegin = "tensor<";
  if (!text.starts_with(kBegin) || !text.ends_with(">"))
    return Error(ErrorCode::kUnimplemented, cat("a value of type ", text, " is not a tensor"));
  std::string_view rest = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  rest = rest.substr(0, rest.find(','));  // drops an encoding
  Dimensions sizes;
  while (!rest.empty() && ((rest[0] >= '0' && rest[0] <= '9') || rest[0] == '?')) {
    if (rest[0] == '?')
      return invalid_boundary(
          cat("the type ", text, " has a dynamic dimension; export the module with static shapes"));
    std::int64_t size = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != 'x')
      return invalid_boundary(cat("the type ", text, " cannot be read"));
    sizes.push_back(size);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  }
  MESHARD_ASSIGN_OR_RETURN(DType dtype, element_type(rest));
  return caught([&]() -> Result<TensorType> {
    TensorType type{dtype, Shape(std::move(sizes))};
    if (type.shape.size() > (std::int64_t{1} << 52))
      return invalid_boundary(cat("a value of type ", text, " has too many elements"));
    return type;
  });
}

std::int64_t devices_of_module(const stablehlo::ModuleFacts& module) {
  if (module.num_partitions) return *module.num_partitions;
  std::int64_t most = 1;
  for (const stablehlo::ModuleMesh& mesh : module.meshes) most = std::max(most, mesh.size());
  for (const auto* values : {&module.arguments, &module.results})
    for (const stablehlo::ModuleValue& value : *values)
      if (!value.sharding.starts_with("#sdy"))
        most = std::max(most, devices_in_tiles(value.sharding));
  return most;
}

bool has_devices_in_order(const stablehlo::ModuleMesh& mesh) {
  for (std::size_t i = 0; i < mesh.device_ids.size(); ++i)
    if (mesh.device_ids[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

const stablehlo::ModuleMesh* mesh_of_all_devices(const stablehlo::ModuleFacts& module,
                                                 std::int64_t devices) {
  const stablehlo::ModuleMesh* found = nullptr;
  for (const stablehlo::ModuleMesh& mesh : module.meshes) {
    if (mesh.size() != devices || mesh.axes.empty()) continue;
    if (mesh.device_ids.empty()) return &mesh;
    if (!found) found = &mesh;
  }
  return found;
}

std::optional<Mesh> mesh_on(const stablehlo::ModuleMesh& mesh, const Mesh& numbering) {
  if (mesh.size() != numbering.size() || mesh.axes.empty()) return std::nullopt;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < numbering.size(); ++i) {
    std::int64_t position =
        mesh.device_ids.empty() ? i : mesh.device_ids[static_cast<std::size_t>(i)];
    if (position < 0 || position >= numbering.size()) return std::nullopt;
    ids.push_back(numbering.device_id(position));
  }
  Result<Mesh> made = caught([&] {
    return Mesh(axes_of(mesh), std::move(ids)).with_device_type(numbering.device_type());
  });
  return made.ok() ? std::optional(*std::move(made)) : std::nullopt;
}

std::vector<Mesh> meshes_of_module(const stablehlo::ModuleFacts& module, const Mesh& numbering,
                                   const stablehlo::ModuleMesh* own) {
  std::vector<Mesh> known = {numbering};
  for (const stablehlo::ModuleMesh& other : module.meshes) {
    if (&other == own) continue;
    std::optional<Mesh> added = mesh_on(other, numbering);
    if (added && std::ranges::find(known, *added) == known.end())
      known.push_back(*std::move(added));
  }
  return known;
}

std::optional<Sharding> sharding_in_module(const stablehlo::ModuleFacts& module,
                                           const stablehlo::ModuleValue& value,
                                           const TensorType& type,
                                           const std::vector<Mesh>& meshes) {
  std::size_t rank = static_cast<std::size_t>(type.rank());
  if (meshes.empty() || value.sharding.empty()) return std::nullopt;
  if (!value.sharding.starts_with("#sdy")) {
    // The positions of GSPMD's tiles are those of the main mesh.
    Result<TileAssignment> tiles = TileAssignment::parse(value.sharding);
    if (!tiles.ok()) return std::nullopt;
    Result<Sharding> read = sharding_from_tiles(meshes[0], *tiles, rank);
    return read.ok() ? std::optional(*std::move(read)) : std::nullopt;
  }
  std::string text = without_priorities(value.sharding);
  const stablehlo::ModuleMesh* named = named_mesh_of(module, text);
  std::optional<Mesh> wanted;
  if (named) wanted = mesh_on(*named, meshes[0]);
  for (const Mesh& mesh : meshes) {
    if (wanted && !same_axes_and_devices(mesh, *wanted)) continue;
    Result<Sharding> read = parse_shardy_sharding(text, mesh);
    if (read.ok() && read->rank() == rank) return *std::move(read);
  }
  return std::nullopt;
}

Result<LoweredModule> lowered_from_module(std::string text, const stablehlo::ModuleFacts& module,
                                          const std::optional<Mesh>& devices) {
  const std::int64_t count = devices_of_module(module), given = devices ? devices->size() : 1;
  if (given != count)
    return invalid_boundary(cat("the program is for ", count, count == 1 ? " device" : " devices",
                                ", but ", given, given == 1 ? " is given" : " are given"));
  LoweredModule lowered;
  lowered.name = module.name.empty() ? "main" : module.name;
  lowered.text = std::move(text);
  if (devices) {
    const stablehlo::ModuleMesh* own = mesh_of_all_devices(module, count);
    if (own && !has_devices_in_order(*own)) own = nullptr;
    MESHARD_ASSIGN_OR_RETURN(Mesh numbering, numbering_on(*devices, own));
    lowered.mesh = numbering;
    lowered.meshes = meshes_of_module(module, numbering, own);
  }
  lowered.is_imported = true;
  lowered.use_shardy = module.is_for_shardy();
  lowered.shards_open_values = count > 1 && module.origin != stablehlo::ModuleOrigin::kMeshard;
  MESHARD_RETURN_IF_ERROR(
      add_boundary(module, module.arguments, "argument", lowered.meshes, lowered.arguments));
  MESHARD_RETURN_IF_ERROR(
      add_boundary(module, module.results, "result", lowered.meshes, lowered.results));
  return lowered;
}

}  // namespace meshard
