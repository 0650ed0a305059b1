// One compile request as sent to the program meshard-compile, its answer, and the cache of answers.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/fields.h"
#include "meshard/base/file_cache.h"
#include "meshard/base/result.h"
#include "meshard/target/compile_for.h"

namespace meshard {

/// Value type: everything that a compile depends on.
struct CompileJob {
  /// The request, with a device id for each partition.
  CompileRequest request = {};
  /// The plugin file.
  std::string plugin = {};
  /// Folder for the compiler's dumps; empty: no dumps.
  std::string dump_folder = {};

  MESHARD_FIELDS(request, plugin, dump_folder)
  std::string serialize() const;
  /// @error data loss
  static Result<CompileJob> deserialize(std::string_view bytes);
  friend bool operator==(const CompileJob&, const CompileJob&) = default;
};

/// Compiles in this process. A module that crashes the compiler ends the process; compile_for.h
/// isolates such crashes.
/// @param step called with the name of each step before it begins: `compiling`
/// @error the plugin's error
Result<Compiled> run_compile_job(const CompileJob& job,
                                 const std::function<void(std::string_view step)>& step);

/// Serializes a result. Errors keep their code and message.
std::string serialize_answer(const Result<Compiled>& answer);
/// Reads what serialize_answer() wrote.
/// @error the error in the answer; data loss if the bytes are damaged
Result<Compiled> deserialize_answer(std::string_view bytes);

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
