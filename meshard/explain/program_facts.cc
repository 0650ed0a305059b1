#include "meshard/explain/program_facts.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/mesh/shardy_text.h"
#include "meshard/sharding/shardy_text.h"
#include "meshard/sharding/tile_assignment.h"
#include "meshard/topology/hybrid_mesh.h"

namespace meshard {
namespace {

Error invalid(std::string message) { return Error(ErrorCode::kInvalidArgument, message); }

std::int64_t size_of(const std::vector<MeshAxis>& axes) {
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  return size;
}

std::vector<std::int64_t> ids_in_order(const Topology& topology) {
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : topology.devices()) ids.push_back(device.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// How many slices each axis spans; the first axes take as many as they can.
std::optional<IntVector> outer_shape(const std::vector<MeshAxis>& axes, std::int64_t slices) {
  IntVector outer;
  for (const MeshAxis& axis : axes) {
    std::int64_t taken = std::gcd(axis.size, slices);
    outer.push_back(taken);
    slices /= taken;
  }
  return slices == 1 ? std::optional(outer) : std::nullopt;
}

// The mesh along the torus; none if there is no such order.
std::optional<Mesh> torus_order(const std::vector<MeshAxis>& axes, const Topology& topology) {
  std::int64_t slices = static_cast<std::int64_t>(granules_of(topology, Granule::kSlice).size());
  std::optional<IntVector> outer = outer_shape(axes, slices);
  if (!outer || !topology.has_coords()) return std::nullopt;
  IntVector inner;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    inner.push_back(axes[i].size / (*outer)[i]);
    names.push_back(axes[i].name);
  }
  // If this shape has no such order, JAX refuses it, too.
  Result<Mesh> mesh = caught([&] { return hybrid_mesh(topology, inner, *outer, names); });
  return mesh.ok() ? std::optional(*std::move(mesh)) : std::nullopt;
}

// Replaces an unsupported element type by an unsigned integer of the same size.
Result<DType> element_type(std::string_view text, std::string& replaced) {
  Result<DType> known = parse_stablehlo_dtype(text);
  if (known.ok()) return known;
  replaced = text;
  if (text == "complex<f32>") return DType::u64;
  if (text == "i4" || text == "ui4" || text == "i2" || text == "ui2" || text == "f4E2M1FN" ||
      text == "f6E2M3FN" || text == "f6E3M2FN")
    return DType::u8;
  return Error(ErrorCode::kUnimplemented, cat("unsupported element type ", text));
}

// Parses `tensor<16x32xf32>`.
Result<TensorType> tensor_type(std::string_view text, std::string& replaced) {
  constexpr std::string_view kBegin = "tensor<";
  if (!text.starts_with(kBegin) || !text.ends_with(">"))
    return Error(ErrorCode::kUnimplemented, cat("a value of type ", text, " is not a tensor"));
  std::string_view rest = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  rest = rest.substr(0, rest.find(','));  // drops an encoding
  Dimensions sizes;
  while (!rest.empty() && ((rest[0] >= '0' && rest[0] <= '9') || rest[0] == '?')) {
    if (rest[0] == '?')
      return invalid(
          cat("the type ", text, " has a dynamic dimension; export the module with static shapes"));
    std::int64_t size = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != 'x')
      return invalid(cat("the type ", text, " cannot be read"));
    sizes.push_back(size);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  }
  MESHARD_ASSIGN_OR_RETURN(DType dtype, element_type(rest, replaced));
  return caught([&]() -> Result<TensorType> {
    TensorType type{dtype, Shape(std::move(sizes))};
    if (type.shape.size() > (std::int64_t{1} << 52))
      return invalid(cat("a value of type ", text, " has too many elements"));
    return type;
  });
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

class ModuleFactsReader {
 public:
  ModuleFactsReader(const stablehlo::ModuleFacts& module, const Target& target,
                    const ModuleLayout& layout)
      : module_(module), target_(target), layout_(layout) {}

  Result<ProgramFacts> read() {
    facts_.program.name = module_.name.empty() ? "main" : module_.name;
    facts_.request.emplace().target = target_;
    facts_.op_names = module_.op_names;
    MESHARD_RETURN_IF_ERROR(find_mesh());
    MESHARD_RETURN_IF_ERROR(add_values(module_.arguments, "argument", facts_.program.arguments,
                                       facts_.argument_names, facts_.argument_places));
    MESHARD_RETURN_IF_ERROR(add_values(module_.results, "result", facts_.program.results,
                                       facts_.result_names, facts_.result_places));
    for (const stablehlo::ModuleValue& value : module_.arguments) {
      facts_.donated.push_back(value.donated);
      facts_.num_captured += value.captured;
    }
    set_propagation();
    return std::move(facts_);
  }

 private:
  std::int64_t partitions() const {
    if (layout_.partitions) return *layout_.partitions;
    if (module_.num_partitions) return *module_.num_partitions;
    std::int64_t most = 1;
    for (const stablehlo::ModuleMesh& mesh : module_.meshes) most = std::max(most, mesh.size());
    for (const auto* values : {&module_.arguments, &module_.results})
      for (const stablehlo::ModuleValue& value : *values)
        if (!value.sharding.starts_with("#sdy"))
          most = std::max(most, devices_in_tiles(value.sharding));
    if (!layout_.axes.empty() && most == 1) most = size_of(layout_.axes);
    return most;
  }

  static bool in_order(const std::vector<std::int64_t>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != static_cast<std::int64_t>(i)) return false;
    return true;
  }

  // The devices of the layout, checked.
  Result<Mesh> mesh_of_ids(std::vector<MeshAxis> axes) const {
    const std::vector<std::int64_t>& ids = layout_.device_ids;
    std::int64_t count = size_of(axes);
    if (std::ssize(ids) != count)
      return invalid(
          cat("[explain] ", ids.size(), " device ids for the ", count, " devices of the program"));
    std::unordered_set<std::int64_t> known, seen;
    std::int64_t largest = -1;
    for (const DeviceAttributes& device : target_.topology().devices()) {
      known.insert(device.id);
      largest = std::max<std::int64_t>(largest, device.id);
    }
    for (std::int64_t id : ids) {
      if (!known.contains(id))
        return invalid(cat("[explain] device ", id, " is not a device of ", target_.name(),
                           ", which has ", target_.size(), " devices with ids up to ", largest));
      if (!seen.insert(id).second)
        return invalid(cat("[explain] device ", id, " is twice among the device ids"));
    }
    if (axes.empty()) axes.push_back({"devices", 1});
    return caught([&] { return Mesh(std::move(axes), ids); });
  }

  // The mesh with its devices that the module was written for, if the target has these devices.
  std::optional<Mesh> device_mesh(std::int64_t count) const {
    if (!module_.device_mesh || !layout_.axes.empty() || layout_.order != DeviceOrder::kModule)
      return std::nullopt;
    const stablehlo::ModuleMesh& own = *module_.device_mesh;
    if (own.size() != count || own.device_ids.size() != static_cast<std::size_t>(count))
      return std::nullopt;
    std::unordered_set<std::int64_t> known;
    for (const DeviceAttributes& device : target_.topology().devices()) known.insert(device.id);
    for (std::int64_t id : own.device_ids)
      if (!known.contains(id)) return std::nullopt;
    // plan() gives a module other meshes, to which these devices do not belong.
    const auto has_axes = [&](const stablehlo::ModuleMesh& mesh) { return mesh.axes == own.axes; };
    if (!module_.meshes.empty() &&
        std::none_of(module_.meshes.begin(), module_.meshes.end(), has_axes))
      return std::nullopt;
    std::vector<MeshAxis> axes;
    for (const auto& [name, size] : own.axes) axes.push_back({name, size});
    Result<Mesh> mesh = caught([&] { return Mesh(std::move(axes), own.device_ids); });
    return mesh.ok() ? std::optional(*std::move(mesh)) : std::nullopt;
  }

  // JAX lets the compiler choose the shardings of exactly the arguments and results that have none
  // (get_prop_to_input_output in jax/_src/interpreters/pxla.py; a result with an unconstrained
  // dimension has none in the module). So do torch_xla and, for all that is known, the others;
  // meshard sets no such option.
  void set_propagation() {
    if (module_.origin == stablehlo::ModuleOrigin::kMeshard) return;
    CompileRequest& request = *facts_.request;
    request.as_jax = true;
    if (facts_.program.num_partitions() == 1) return;
    std::size_t open = 0;
    const auto set = [&](const std::vector<stablehlo::ModuleValue>& values,
                         std::vector<bool>& flags) {
      for (const stablehlo::ModuleValue& value : values) {
        flags.push_back(value.sharding.empty() && !value.type.starts_with("!stablehlo.token"));
        open += flags.back();
      }
    };
    set(module_.arguments, request.options.propagate_to_parameters);
    set(module_.results, request.options.propagate_to_outputs);
    if (module_.origin == stablehlo::ModuleOrigin::kUnknown && open > 0)
      facts_.notes.push_back(
          cat("the module does not say which framework wrote it: as with JAX, the compiler chooses "
              "the shardings of ",
              open,
              open == 1 ? " argument or result that has none"
                        : " arguments and results that have none"));
  }

  // The module's mesh over all partitions, preferably one with devices in order.
  const stablehlo::ModuleMesh* own_mesh(std::int64_t partitions) const {
    const stablehlo::ModuleMesh* found = nullptr;
    for (const stablehlo::ModuleMesh& mesh : module_.meshes) {
      if (mesh.size() != partitions || mesh.axes.empty()) continue;
      if (mesh.device_ids.empty()) return &mesh;
      if (!found) found = &mesh;
    }
    return found;
  }

  Result<void> find_mesh() {
    std::int64_t count = partitions();
    if (count < 1 || count > (1 << 24))
      return invalid(cat("unsupported number of devices of the module: ", count));
    std::vector<MeshAxis> axes = layout_.axes;
    const stablehlo::ModuleMesh* own = axes.empty() ? own_mesh(count) : nullptr;
    if (own && !in_order(own->device_ids)) {
      // The main mesh numbers the devices; the module's own is one of the others.
      own = nullptr;
      axes.push_back({"devices", count});
      facts_.notes.push_back(
          "the module's mesh lists its devices in another order: collectives are shown by the axis "
          "\"devices\", which has them in order");
    }
    if (own)
      for (const auto& [name, size] : own->axes) axes.push_back({name, size});
    if (axes.empty() && count > 1) {
      axes.push_back({"devices", count});
      facts_.notes.push_back(
          cat("the module defines no mesh for its ", count,
              " devices: they form a single axis \"devices\" (use --mesh to define other axes)"));
    }
    if (size_of(axes) != count)
      return invalid(cat("the module is for ", count, " devices, but the mesh ",
                         axes_text(axes, ", "), " has ", size_of(axes)));
    if (!layout_.device_ids.empty()) {
      MESHARD_ASSIGN_OR_RETURN(facts_.program.mesh, mesh_of_ids(std::move(axes)));
      facts_.program.meshes = {*facts_.program.mesh};
      add_other_meshes(own);
      return {};
    }
    if (count != target_.size() && !layout_.part_of_target)
      return invalid(cat(
          "the module is for ", count, " devices, but ", target_.name(), " has ", target_.size(),
          count < target_.size() ? "; use --devices to compile for only some of them" : ""));
    if (std::optional<Mesh> written = device_mesh(count)) {
      facts_.program.mesh = std::move(written);
      facts_.program.meshes = {*facts_.program.mesh};
      add_other_meshes(nullptr);
      return {};
    }
    if (count == 1 && axes.empty()) return {};
    MESHARD_ASSIGN_OR_RETURN(facts_.program.mesh,
                             mesh_on_target(std::move(axes), target_, layout_.order, count));
    facts_.program.meshes = {*facts_.program.mesh};
    add_other_meshes(own);
    return {};
  }

  // Other meshes of the module number the same devices: position i is the main mesh's i.
  void add_other_meshes(const stablehlo::ModuleMesh* own) {
    const Mesh& mesh = *facts_.program.mesh;
    for (const stablehlo::ModuleMesh& other : module_.meshes) {
      if (&other == own || other.size() != mesh.size() || other.axes.empty()) continue;
      std::vector<MeshAxis> axes;
      std::vector<std::int64_t> ids;
      for (const auto& [name, size] : other.axes) axes.push_back({name, size});
      for (std::int64_t i = 0; i < mesh.size(); ++i) {
        std::int64_t position =
            other.device_ids.empty() ? i : other.device_ids[static_cast<std::size_t>(i)];
        if (position < 0 || position >= mesh.size()) return;
        ids.push_back(mesh.device_id(position));
      }
      Result<Mesh> added = caught([&] { return Mesh(std::move(axes), std::move(ids)); });
      if (!added.ok())
        continue;  // invalid axis names: its shardings are reported over the main mesh
      std::vector<Mesh>& known = facts_.program.meshes;
      if (std::find(known.begin(), known.end(), *added) == known.end())
        known.push_back(*std::move(added));
    }
  }

  Result<void> add_values(const std::vector<stablehlo::ModuleValue>& values, std::string_view role,
                          std::vector<LoweredValue>& to, std::vector<std::string>& names,
                          std::vector<std::string>& places) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string replaced;
      Result<TensorType> type = tensor_type(values[i].type, replaced);
      if (!type.ok()) return type.error().with_note(cat("in ", role, " ", i, " ", values[i].name));
      if (!replaced.empty())
        facts_.notes.push_back(
            cat(role, " ", i, " has elements of type ", replaced, ", shown as ", type->dtype));
      TensorType own = *type;  // without padding
      if (!values[i].own_type.empty()) {
        Result<TensorType> read = tensor_type(values[i].own_type, replaced);
        if (read.ok() && read->rank() == type->rank()) own = *std::move(read);
      }
      LoweredValue value{std::move(own), *type, asked_sharding(values[i], *type)};
      value.is_specified_otherwise = facts_.program.mesh && !value.sharding &&
                                     !values[i].sharding.empty() &&
                                     values[i].sharding.find('?') == std::string::npos;
      to.push_back(std::move(value));
      names.push_back(values[i].name);
      places.push_back(values[i].place);
    }
    return {};
  }

  // The positions of GSPMD's tiles are those of the main mesh.
  std::optional<Sharding> sharding_of_tiles(std::string_view text, const TensorType& type) const {
    Result<TileAssignment> tiles = TileAssignment::parse(text);
    if (!tiles.ok()) return std::nullopt;
    Result<Sharding> read =
        sharding_from_tiles(*facts_.program.mesh, *tiles, static_cast<std::size_t>(type.rank()));
    return read.ok() ? std::optional(*std::move(read)) : std::nullopt;
  }

  std::optional<Sharding> asked_sharding(const stablehlo::ModuleValue& value,
                                         const TensorType& type) const {
    if (!facts_.program.mesh || value.sharding.empty()) return std::nullopt;
    if (!value.sharding.starts_with("#sdy")) return sharding_of_tiles(value.sharding, type);
    std::string text = without_priorities(value.sharding);
    for (std::size_t i = 0; i < facts_.program.meshes.size(); ++i) {
      Result<Sharding> read = parse_shardy_sharding(text, facts_.program.meshes[i]);
      if (read.ok() && read->rank() == static_cast<std::size_t>(type.rank())) return *read;
    }
    return std::nullopt;
  }

  const stablehlo::ModuleFacts& module_;
  const Target& target_;
  const ModuleLayout& layout_;
  ProgramFacts facts_;
};

}  // namespace

void describe_graph(const Graph& graph, const std::vector<std::string>& parameter_names,
                    const std::vector<std::uint32_t>& donated, ProgramFacts& facts) {
  facts.graph = graph;
  facts.num_captured = graph.captured().size();
  facts.argument_names = parameter_names;
  facts.donated.assign(graph.parameters().size(), false);
  for (std::uint32_t parameter : donated)
    if (parameter < facts.donated.size()) facts.donated[parameter] = true;
}

Result<std::optional<ProcessMap>> processes_of(const Target& target, const LinkOptions& links) {
  std::optional<ProcessMap> processes;
  if (!links.processes && !links.between_processes) return processes;
  processes = ProcessMap::of(target.topology());
  if (links.processes) {
    MESHARD_ASSIGN_OR_RETURN(processes, ProcessMap::divided(target.topology(), *links.processes));
  }
  if (links.between_processes && processes->count() == 1)
    return invalid(cat("[explain] a link between processes is given, but all devices of ",
                       target.name(), " are in one process: set the number of processes, too"));
  return processes;
}

std::string axes_text(std::span<const MeshAxis> axes, std::string_view separator) {
  std::vector<std::string> sizes;
  for (const MeshAxis& axis : axes) sizes.push_back(cat(axis.name, "=", axis.size));
  return join(sizes, separator);
}

Result<Mesh> mesh_on_target(std::vector<MeshAxis> axes, const Target& target, DeviceOrder order,
                            std::optional<std::int64_t> devices) {
  std::int64_t count = devices.value_or(target.size());
  if (count > target.size())
    return invalid(cat("[explain] ", count, " devices are requested, but ", target.name(), " has ",
                       target.size()));
  return caught([&]() -> Result<Mesh> {
    check_mesh_axes(axes, {});
    if (size_of(axes) != count)
      return invalid(cat("[explain] a mesh ", axes_text(axes, ", "), " has ", size_of(axes),
                         " positions, but the program uses ", count, " devices of ",
                         target.name()));
    if (order != DeviceOrder::kIds && count == target.size())
      if (std::optional<Mesh> mesh = torus_order(axes, target.topology())) return *std::move(mesh);
    std::vector<std::int64_t> ids = ids_in_order(target.topology());
    ids.resize(static_cast<std::size_t>(count));
    return Mesh(std::move(axes), std::move(ids));
  });
}

Result<ProgramFacts> facts_of_module(const stablehlo::ModuleFacts& module, const Target& target,
                                     const ModuleLayout& layout) {
  return ModuleFactsReader(module, target, layout).read();
}

}  // namespace meshard
