// Hardware that may be absent; programs can be compiled for it.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/plugin.h"

namespace meshard::pjrt {

/// Move-only owner of a description of absent devices, or a view of a client's description.
class TopologyDescription {
 public:
  /// Describes hardware by name, e.g. `v5e:16x16` for libtpu. The CUDA plugin accepts any name and
  /// requires the options `target_config` and `topology`.
  static Result<TopologyDescription> create(Plugin plugin, std::string_view name,
                                            std::span<const NamedValue> options = {});
  /// The devices of a client.
  static Result<TopologyDescription> of(const Client& client);
  /// Parses the output of serialize().
  static Result<TopologyDescription> deserialize(Plugin plugin, std::string_view bytes);

  Result<std::string> platform() const;
  Result<std::string> platform_version() const;
  /// The devices in the plugin's order, which may differ from the order of the ids.
  const std::vector<DeviceDescription>& devices() const { return devices_; }
  Result<std::vector<NamedValue>> attributes() const;
  Result<std::string> serialize() const;
  /// Compiles for these devices. If the device assignment is missing, the plugin chooses it.
  /// @error invalid argument if `options` are invalid or name devices that are not described
  Result<Executable> compile(std::string_view module, const CompileOptions& options) const;

 private:
  static Result<TopologyDescription> make(Plugin plugin, PJRT_TopologyDescription* raw,
                                          ClientRef client = {});
  TopologyDescription(Plugin plugin, PJRT_TopologyDescription* raw, ClientRef client);
  Plugin plugin_;
  PJRT_TopologyDescription* raw_;
  ClientRef client_;                                    // if set, the client owns raw_
  internal::Owned<PJRT_TopologyDescription> own_ = {};  // else this
  std::vector<DeviceDescription> devices_;
};

}  // namespace meshard::pjrt
