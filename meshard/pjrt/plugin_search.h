// Searches for plugins on this machine, and checks the hash of fetched ones.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/file_cache.h"
#include "meshard/base/result.h"

namespace meshard::pjrt {

/// One place that was searched.
struct SearchedPlace {
  /// A directory, or the file that MESHARD_PLUGIN names.
  std::string path;
  /// Why it was searched: `MESHARD_PLUGIN`, `cache`, `python`.
  std::string reason;
  bool exists = false;
};

/// A plugin file that was found; it has not been loaded.
struct FoundPlugin {
  std::string path;
  /// `cpu`, `cuda`, `rocm`, `oneapi`, `tpu` or empty, guessed from the file name.
  std::string platform;
  /// As in SearchedPlace.
  std::string reason;
};

struct PluginSearch {
  /// Best first: MESHARD_PLUGIN, then the cache, then Python wheels. Each file appears once.
  std::vector<FoundPlugin> found;
  std::vector<SearchedPlace> places;

  /// The first plugin of `platform`. A file that MESHARD_PLUGIN names matches any platform.
  /// @error not found, with how to get one and the places that were searched
  Result<std::string> first(std::string_view platform) const;
};

/// Searches for plugins, in this order:
/// 1. the files in MESHARD_PLUGIN, separated by colons;
/// 2. `plugins/`, `plugins/*/jax_plugins/` and `xla_plugins/` of the cache folder: MESHARD_CACHE,
///    else XDG_CACHE_HOME/meshard, else ~/.cache/meshard (of the password database without HOME);
///    the default CPU plugin, which `meshard fetch cpu` gets, before others;
/// 3. `xla_plugins/*`, `jax_plugins/*`, `libtpu/` and the default CPU plugin's folder of Python's
///    site-packages: VIRTUAL_ENV, CONDA_PREFIX, PYTHONPATH, ~/.local, /usr/local and /usr.
PluginSearch find_plugins(const ReadEnvironment& environment = {});

/// The platform guessed from a plugin's file name: `cpu`, `cuda`, `rocm`, `oneapi` (Intel GPUs),
/// `tpu` or empty.
std::string guess_platform(std::string_view path);

/// A value: the contents of `PLUGIN.fetched`, with lines `sha256 HEX`, `size N`, `time
/// NANOSECONDS`, `owner UID`.
struct FetchedRecord {
  std::string sha256;
  std::int64_t size = 0;
  /// Time of the last modification.
  std::int64_t time = 0;
  std::int64_t owner = 0;

  /// @error data loss if it is not a record
  static Result<FetchedRecord> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const FetchedRecord&, const FetchedRecord&) = default;
};

/// How a plugin file compares with its record.
enum class FetchedState {
  /// There is no record: the plugin was not fetched, or by an older version.
  kNoRecord,
  /// Size, time and owner match the record.
  kUnchanged,
  /// One of them differs, but the computed hash matches the record.
  kHashChecked,
};

/// Compares a plugin file with its record. Reads the whole file only if its size, time or owner
/// changed, and then updates the record if it is writable.
/// @error data loss if the hash differs or the record is damaged; the message says how to fetch the
/// file again
Result<FetchedState> check_fetched_file(const std::string& path);

}  // namespace meshard::pjrt
