// Finished compiles on disk.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/base/result.h"
#include "meshard/target/compile_job.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// Handle on a folder of finished compiles, bounded in bytes. Several processes may use it at once.
class CompiledCache {
 public:
  /// The folder is made when something is kept. Without a name nothing is kept.
  /// @param most_bytes of all files; what was used longest ago is removed beyond that
  explicit CompiledCache(std::string folder, std::uint64_t most_bytes = most_bytes_set())
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// MESHARD_COMPILED_CACHE_MB in bytes; 1024 MiB by default.
  /// @error invalid argument if it is not a whole number.
  static std::uint64_t most_bytes_set();

  /// @error permission denied if another user could have written the folder (check_file_trust)
  Result<void> check_trust() const;

  /// What stands for a compile: the job without its dump folder, the plugin file (path, size and
  /// time), meshard's own format, and the environment variables that compilers read.
  static std::string key_of(const CompileJob& job);

  /// None if it is not there or damaged.
  std::optional<Compiled> find(const std::string& key) const;
  /// Then removes the files that were used longest ago, until the rest fits.
  /// @error what the system says
  Result<void> keep(const std::string& key, const Compiled& compiled) const;
  /// The file of a key.
  std::string path_of(const std::string& key) const;

 private:
  void shrink() const;

  std::string folder_;
  std::uint64_t most_bytes_;
};

}  // namespace meshard
