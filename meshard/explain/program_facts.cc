#include "meshard/explain/program_facts.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/lowering/module_boundary.h"
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
  std::ranges::sort(ids);
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
    std::int64_t own = devices_of_module(module_);
    return module_.num_partitions || layout_.axes.empty() || own > 1 ? own : size_of(layout_.axes);
  }

  // The devices of the layout, checked.
  Result<Mesh> mesh_of_ids(std::vector<MeshAxis> axes) const {
    const std::vector<std::int64_t>& ids = layout_.device_ids;
    std::int64_t count = size_of(axes);
    if (std::ssize(ids) != count)
      return invalid(
          cat("[explain] ", ids.size(), " device ids for the ", count, " devices of the program"));
    const std::vector<std::int64_t> known = ids_in_order(target_.topology());
    std::unordered_set<std::int64_t> seen;
    for (std::int64_t id : ids) {
      if (!std::ranges::binary_search(known, id))
        return invalid(cat("[explain] device ", id, " is not a device of ", target_.name(),
                           ", which has ", target_.size(), " devices with ids up to ",
                           known.back()));
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
    const std::vector<std::int64_t> known = ids_in_order(target_.topology());
    for (std::int64_t id : own.device_ids)
      if (!std::ranges::binary_search(known, id)) return std::nullopt;
    // plan() gives a module other meshes, to which these devices do not belong.
    const auto has_axes = [&](const stablehlo::ModuleMesh& mesh) { return mesh.axes == own.axes; };
    if (!module_.meshes.empty() && std::ranges::none_of(module_.meshes, has_axes))
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

  Result<void> find_mesh() {
    std::int64_t count = partitions();
    if (count < 1 || count > (1 << 24))
      return invalid(cat("unsupported number of devices of the module: ", count));
    std::vector<MeshAxis> axes = layout_.axes;
    const stablehlo::ModuleMesh* own = axes.empty() ? mesh_of_all_devices(module_, count) : nullptr;
    if (own && !has_devices_in_order(*own)) {
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
      MESHARD_ASSIGN_OR_RETURN(Mesh mesh, mesh_of_ids(std::move(axes)));
      return set_mesh(mesh, own);
    }
    if (count != target_.size() && !layout_.part_of_target)
      return invalid(cat(
          "the module is for ", count, " devices, but ", target_.name(), " has ", target_.size(),
          count < target_.size() ? "; use --devices to compile for only some of them" : ""));
    if (std::optional<Mesh> written = device_mesh(count)) return set_mesh(*written, nullptr);
    if (count == 1 && axes.empty()) return {};
    MESHARD_ASSIGN_OR_RETURN(Mesh mesh,
                             mesh_on_target(std::move(axes), target_, layout_.order, count));
    return set_mesh(mesh, own);
  }

  Result<void> set_mesh(const Mesh& mesh, const stablehlo::ModuleMesh* own) {
    facts_.program.mesh = mesh;
    facts_.program.meshes = meshes_of_module(module_, mesh, own);
    return {};
  }

  Result<void> add_values(const std::vector<stablehlo::ModuleValue>& values, std::string_view role,
                          std::vector<LoweredValue>& to, std::vector<std::string>& names,
                          std::vector<std::string>& places) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string replaced;
      const auto dtype = [&](std::string_view text) { return element_type(text, replaced); };
      Result<TensorType> type = module_tensor_type(values[i].type, dtype);
      if (!type.ok()) return type.error().with_note(cat("in ", role, " ", i, " ", values[i].name));
      if (!replaced.empty())
        facts_.notes.push_back(
            cat(role, " ", i, " has elements of type ", replaced, ", shown as ", type->dtype));
      TensorType own = *type;  // without padding
      if (!values[i].own_type.empty()) {
        Result<TensorType> read = module_tensor_type(values[i].own_type, dtype);
        if (read.ok() && read->rank() == type->rank()) own = *std::move(read);
      }
      LoweredValue value{std::move(own), *type,
                         sharding_in_module(module_, values[i], *type, facts_.program.meshes)};
      value.is_specified_otherwise =
          facts_.program.mesh && !value.sharding && values[i].has_closed_sharding();
      to.push_back(std::move(value));
      names.push_back(values[i].name);
      places.push_back(values[i].place);
    }
    return {};
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
