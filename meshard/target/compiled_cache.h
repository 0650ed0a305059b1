// Finished compiles on disk.
#pragma once
#include <optional>
#include <string>

#include "meshard/base/result.h"
#include "meshard/target/compile_job.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// Handle on a folder of finished compiles. Several processes may use it at once.
class CompiledCache {
 public:
  /// The folder is made when something is kept.
  explicit CompiledCache(std::string folder) : folder_(std::move(folder)) {}

  /// What stands for a compile: the job without its dump folder, the plugin file (path, size and
  /// time), meshard's own format, and the environment variables that compilers read.
  static std::string key_of(const CompileJob& job);

  /// None if it is not there or damaged.
  std::optional<Compiled> find(const std::string& key) const;
  /// @error what the system says
  Result<void> keep(const std::string& key, const Compiled& compiled) const;
  /// The file of a key.
  std::string path_of(const std::string& key) const;

 private:
  std::string folder_;
};

}  // namespace meshard
