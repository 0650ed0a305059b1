// On-disk cache of compiled programs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/base/result.h"
#include "meshard/target/compile_job.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// Handle on a cache folder of bounded size. Several processes may use it at once.
class CompiledCache {
 public:
  /// The folder is created on the first write. With an empty name nothing is cached.
  /// @param most_bytes size limit of all files; least recently used files are removed beyond it
  CompiledCache(std::string folder, std::uint64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// MESHARD_COMPILED_CACHE_MB in bytes; 1024 MiB by default.
  /// @error invalid argument if it is not a whole number.
  static Result<std::uint64_t> most_bytes_set();

  /// @error permission denied if another user could have written the folder (check_file_trust)
  Result<void> check_trust() const;

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
  std::string path_of(const std::string& key) const;

 private:
  void shrink() const;

  std::string folder_;
  std::uint64_t most_bytes_;
};

}  // namespace meshard
