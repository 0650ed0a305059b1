// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/topology.h"

#include <unordered_set>
#include <utility>

#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/process_end.h"

namespace meshard::pjrt {

TopologyDescription::TopologyDescription(Plugin plugin, PJRT_TopologyDescription* raw,
                                         ClientRef client)
    : plugin_(plugin), raw_(raw), client_(std::move(client)) {
  if (!client_) own_ = {{}, plugin_.api(), raw_};
}

Result<TopologyDescription> TopologyDescription::make(Plugin plugin, PJRT_TopologyDescription* raw,
                                                      ClientRef client) {
  TopologyDescription made(plugin, raw, std::move(client));
  MESHARD_PJRT_QUERY(plugin.api(), PJRT_TopologyDescription_GetDeviceDescriptions, args, topology,
                     raw);
  made.devices_.reserve(args.num_descriptions);
  for (std::size_t i = 0; i < args.num_descriptions; ++i) {
    MESHARD_ASSIGN_OR_RETURN(DeviceDescription device,
                             DeviceDescription::read(plugin.api(), args.descriptions[i]));
    made.devices_.push_back(device);
  }
  return made;
}

Result<TopologyDescription> TopologyDescription::create(Plugin plugin, std::string_view name,
                                                        std::span<const NamedValue> options) {
  auto views = internal::view_named_values(options);
  MESHARD_PJRT_ARGS(PJRT_TopologyDescription_Create, args);
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  args.create_options = views.data();
  args.num_options = views.size();
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(plugin.api(), PJRT_TopologyDescription_Create, args));
  return make(plugin, args.topology);
}

Result<TopologyDescription> TopologyDescription::of(const Client& client) {
  const PJRT_Api* api = client.plugin().api();
  MESHARD_PJRT_QUERY(api, PJRT_Client_TopologyDescription, args, client, client.raw());
  return make(client.plugin(), args.topology, client.ref());
}

Result<TopologyDescription> TopologyDescription::deserialize(Plugin plugin,
                                                             std::string_view bytes) {
  MESHARD_PJRT_ARGS(PJRT_TopologyDescription_Deserialize, args);
  args.serialized_topology = bytes.data();
  args.serialized_topology_size = bytes.size();
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(plugin.api(), PJRT_TopologyDescription_Deserialize, args));
  return make(plugin, args.topology);
}

Result<std::string> TopologyDescription::platform() const {
  MESHARD_PJRT_QUERY(plugin_.api(), PJRT_TopologyDescription_PlatformName, args, topology, raw_);
  return std::string(args.platform_name, args.platform_name_size);
}

Result<std::string> TopologyDescription::platform_version() const {
  MESHARD_PJRT_QUERY(plugin_.api(), PJRT_TopologyDescription_PlatformVersion, args, topology, raw_);
  return std::string(args.platform_version, args.platform_version_size);
}

Result<std::vector<NamedValue>> TopologyDescription::attributes() const {
  MESHARD_PJRT_QUERY(plugin_.api(), PJRT_TopologyDescription_Attributes, args, topology, raw_);
  return internal::read_named_values(args.attributes, args.num_attributes);
}

Result<std::string> TopologyDescription::serialize() const {
  MESHARD_PJRT_QUERY(plugin_.api(), PJRT_TopologyDescription_Serialize, args, topology, raw_);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_topology_deleter(args.serialized_topology);
  return bytes;
}

Result<Executable> TopologyDescription::compile(std::string_view module,
                                                const CompileOptions& options) const {
  MESHARD_RETURN_IF_ERROR(options.check());
  if (module.empty()) return Error(ErrorCode::kInvalidArgument, "[compile] the module is empty");
  if (static_cast<std::size_t>(options.num_devices()) > devices_.size())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[compile] the program needs ", options.num_devices(),
                     " devices, the topology has ", devices_.size()));
  std::unordered_set<int> ids;
  if (!options.device_assignment.empty())
    for (const DeviceDescription& device : devices_) ids.insert(device.id());
  for (int id : options.device_assignment)
    if (!ids.contains(id))
      return Error(ErrorCode::kInvalidArgument, cat("[compile] the topology has no device ", id));

  std::string bytes = options.serialize();
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(module.data());  // not written in this direction
  program.code_size = module.size();
  constexpr std::string_view kFormat = "mlir";
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  MESHARD_PJRT_ARGS(PJRT_Compile, args);
  args.topology = raw_;
  args.program = &program;
  args.compile_options = bytes.data();
  args.compile_options_size = bytes.size();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(plugin_.api(), PJRT_Compile, args));
  return Executable(plugin_.api(), args.executable, client_);
}

}  // namespace meshard::pjrt
