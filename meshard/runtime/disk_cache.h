// Compiled programs in files, for later processes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/file_cache.h"
#include "meshard/base/result.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/executable.h"

namespace meshard {

/// Handle on the programs that were compiled before, in any process: the folder `programs/` of the
/// cache folder. Several processes may use it at once. Thread-safe.
///
/// An entry is found if the module text, the compile options and the number of devices are equal,
/// and also what the machine code depends on: the plugin file, the platform's version, the kind of
/// device, for CPUs the instruction set and the number of cores, and the environment variables that
/// compilers read. The devices may be others: the entry is loaded for those of the caller.
class DiskCache {
 public:
  /// The process's cache: MESHARD_PROGRAM_CACHE_MB MiB (default 1024; 0: none) in
  /// cache_folder().
  /// @error invalid argument if that is not a whole number
  static Result<DiskCache> of_process();
  /// With an empty folder name nothing is kept.
  DiskCache(std::string folder, std::uint64_t most_bytes);

  bool is_on() const { return !files_.folder().empty() && files_.most_bytes() > 0; }
  const FileCache& files() const { return files_; }

  struct Key {
    /// The name of the program, for messages.
    std::string name;
    /// A fingerprint of text, options and number of devices.
    std::string program;
    /// What else the machine code depends on: a line each, `plugin sha256 4711...`.
    std::string environment;
  };
  static Key key_of(const pjrt::Client& client, const LoweredModule& lowered,
                    const pjrt::CompileOptions& options);

  struct Entry {
    std::string executable;  // as from pjrt::Executable::serialize
    pjrt::ExecutableSignature signature;
    /// As from pjrt::interface_bytes: the shardings that the compiler chose.
    std::string interface = {};
  };
  /// None if there is no such entry; disk_misses() then has the reason.
  std::optional<Entry> find(const Key& key) const;
  /// @error the system's error
  Result<void> keep(const Key& key, const Entry& entry) const;

 private:
  std::string why_not(const Key& key) const;

  FileCache files_;
};

/// Why programs were compiled although there is a cache on disk, oldest first; at most the last
/// 100: `"train": not compiled before`, `"train": compiled before with "cores 8", now "cores 2"`.
std::vector<std::string> disk_misses();

namespace internal {
/// Records a reason for disk_misses(), and writes it to the standard error stream if log_level() is
/// kInfo.
void record_disk_miss(std::string reason);
}  // namespace internal

}  // namespace meshard
