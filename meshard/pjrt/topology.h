// Hardware that need not be here: compile for it without it.
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

struct PJRT_TopologyDescription;

namespace meshard::pjrt {

/// Move-only owner of a description of devices that are absent, or a view of a client's own.
class Topology {
 public:
  /// Describes hardware by name, e.g. `v5e:16x16` for libtpu; the CUDA plugin wants any name and
  /// the options `target_config` and `topology`.
  static Result<Topology> create(Plugin plugin, std::string_view name,
                                 std::span<const NamedValue> options = {});
  /// The devices of a client.
  static Result<Topology> of(const Client& client);
  /// Reads what serialize() wrote.
  static Result<Topology> deserialize(Plugin plugin, std::string_view bytes);

  Topology(Topology&& other) noexcept;
  Topology& operator=(Topology&& other) noexcept;
  ~Topology();

  Result<std::string> platform() const;
  Result<std::string> platform_version() const;
  /// In the plugin's order, which need not be that of the ids.
  const std::vector<DeviceDescription>& devices() const { return devices_; }
  Result<std::vector<NamedValue>> attributes() const;
  Result<std::string> serialize() const;
  /// Compiles for these devices. A missing device assignment is left to the plugin.
  /// @error invalid argument if `options` are unsound or name devices that are not described
  Result<Executable> compile(std::string_view module, const CompileOptions& options) const;

 private:
  Topology(Plugin plugin, PJRT_TopologyDescription* raw, ClientRef client);
  Result<void> read_devices();
  void release() noexcept;
  Plugin plugin_;
  PJRT_TopologyDescription* raw_;
  ClientRef client_;  // if set, raw_ is the client's
  std::vector<DeviceDescription> devices_;
};

}  // namespace meshard::pjrt
