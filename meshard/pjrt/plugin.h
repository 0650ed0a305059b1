// A device plugin: a shared library that implements the PJRT C API.
#pragma once
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"

struct PJRT_Api;

namespace meshard::pjrt {

/// A value: the version of the C API that a plugin was built with.
struct ApiVersion {
  int major = 0;
  int minor = 0;
  /// `0.81`
  std::string to_string() const;
  friend bool operator==(const ApiVersion&, const ApiVersion&) = default;
  friend auto operator<=>(const ApiVersion&, const ApiVersion&) = default;
};

/// A value: one entry of a plugin's list of extensions.
struct Extension {
  int type = 0;
  std::size_t struct_size = 0;
  /// `FFI`, `Layouts`, ...; `unknown` for numbers of a newer API.
  std::string_view name() const;
};

/// The version of the C API that meshard was built with, and the oldest that it accepts.
ApiVersion built_api_version();
ApiVersion oldest_api_version();

/// A handle on a loaded plugin; cheap to copy. A plugin is never unloaded, because its threads and
/// static objects would not survive that. Several plugins can be loaded at once. Thread-safe.
class Plugin {
 public:
  /// Loads and initializes the plugin at `path`. Loading the same path again returns the same
  /// plugin. First sets the environment variables that control the plugin's logging
  /// (choose_plugin_log in plugin_log.h).
  /// @error not found if the file does not exist; failed precondition if it cannot be loaded (with
  /// the loader's message) or is not a plugin; permission denied if another user could have written
  /// it (check_file_trust); data loss if it changed since it was fetched; unimplemented if its API
  /// version is not supported.
  static Result<Plugin> load(const std::string& path);

  /// Wraps a function table that is already in the process.
  /// @pre `api` stays valid forever
  static Result<Plugin> adopt(const PJRT_Api* api, std::string path = "(in process)");

  const std::string& path() const;
  ApiVersion version() const;
  /// The plugin's attributes: `xla_version`, `stablehlo_current_version`, ...
  const std::vector<NamedValue>& attributes() const;
  const std::vector<Extension>& extensions() const;
  bool has_extension(int type) const;
  /// The newest StableHLO version that it reads, e.g. `1.13.3`; empty if not reported.
  std::string newest_stablehlo() const;
  /// The oldest StableHLO version that it reads; empty if not reported.
  std::string oldest_stablehlo() const;
  /// The entries of meshard's function table that this plugin lacks; empty if it is as new as our
  /// header.
  std::vector<std::string> missing_entries() const;

  const PJRT_Api* api() const;
  friend bool operator==(const Plugin&, const Plugin&) = default;

 private:
  struct State;
  explicit Plugin(const State* state) : state_(state) {}
  const State* state_;
};

}  // namespace meshard::pjrt
