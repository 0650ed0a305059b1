// On-disk cache of compiled programs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/base/file_cache.h"
#include "meshard/base/result.h"
#include "meshard/target/compile_for.h"
#include "meshard/target/compile_job.h"

namespace meshard {

/// The finished compiles of `compiled/` in the cache folder (FileCache).
class CompiledCache {
 public:
  /// With an empty folder name nothing is cached.
  CompiledCache(std::string folder, std::uint64_t most_bytes);

  /// MESHARD_COMPILED_CACHE_MB in bytes; 1024 MiB by default.
  /// @error invalid argument if it is not a whole number.
  static Result<std::uint64_t> most_bytes_set();

  /// @error permission denied if another user could have written the folder (check_file_trust)
  Result<void> check_trust() const { return files_.check_trust(); }

  /// The cache key of a compile: the job without its dump folder, the plugin file (path, size and
  /// modification time), meshard's format version, and the environment variables that compilers
  /// read.
  static std::string key_of(const CompileJob& job);

  /// None if the key is missing or the file damaged.
  std::optional<Compiled> find(const std::string& key) const;
  /// Writes an entry, then removes least recently used files until the rest fits.
  /// @error the system's error
  Result<void> keep(const std::string& key, const Compiled& compiled) const;
  /// The file for a key.
  std::string path_of(const std::string& key) const { return files_.path_of(key); }

 private:
  FileCache files_;
};

}  // namespace meshard
