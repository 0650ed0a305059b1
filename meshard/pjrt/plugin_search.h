// Where plugins lie on this machine.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// One place that was looked at.
struct SearchedPlace {
  /// A folder, or the file that MESHARD_PLUGIN names.
  std::string path;
  /// Why it was looked at: `MESHARD_PLUGIN`, `cache`, `python`.
  std::string reason;
  bool exists = false;
};

/// A plugin file that was found; it has not been loaded.
struct FoundPlugin {
  std::string path;
  /// `cpu`, `cuda`, `rocm`, `tpu` or empty, guessed from the file's name.
  std::string platform;
  /// As in SearchedPlace.
  std::string reason;
};

struct PluginSearch {
  /// Best first: MESHARD_PLUGIN, then the cache, then Python wheels. No file twice.
  std::vector<FoundPlugin> found;
  std::vector<SearchedPlace> places;

  /// The first plugin of `platform`. A file that MESHARD_PLUGIN names serves for any platform.
  /// @error not found, saying how to get one and listing the places
  Result<std::string> first(std::string_view platform) const;
};

/// How the search reads an environment variable; a test gives its own.
using ReadEnvironment = std::function<std::optional<std::string>(const char* name)>;

/// Looks for plugins, in this order:
/// 1. the files in MESHARD_PLUGIN, separated by colons;
/// 2. `plugins/`, `plugins/*/jax_plugins/` and `xla_plugins/` of the cache folder: MESHARD_CACHE,
///    else XDG_CACHE_HOME/meshard, else ~/.cache/meshard (of the password database without HOME);
///    the default CPU plugin, which `meshard fetch cpu` gets, before others;
/// 3. `xla_plugins/*`, `jax_plugins/*`, `libtpu/` and the default CPU plugin's folder of Python's
///    site-packages: VIRTUAL_ENV, CONDA_PREFIX, PYTHONPATH, ~/.local, /usr/local and /usr.
PluginSearch find_plugins(const ReadEnvironment& environment = {});

/// The cache folder, whether it exists or not: MESHARD_CACHE, else XDG_CACHE_HOME/meshard, else
/// ~/.cache/meshard, where the home folder is HOME or, without it, that of the password database.
/// Empty if there is none of them: then nothing is cached.
std::string cache_folder(const ReadEnvironment& environment = {});

/// `cpu`, `cuda`, `rocm`, `tpu` or empty, from a plugin file's name.
std::string guess_platform(std::string_view path);

}  // namespace meshard::pjrt
