// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/compiled_cache.h"

#include <filesystem>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/fingerprint.h"
#include "meshard/pjrt/compile_options.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// Format version: increases when the meaning of the bytes changes.
constexpr std::string_view kFormat = "meshard compiled 2";

std::string plugin_identity(const std::string& plugin) {
  std::error_code ignored;
  fs::path real = fs::canonical(plugin, ignored);
  auto time = fs::last_write_time(real, ignored).time_since_epoch().count();
  return cat(real.string(), "\n", fs::file_size(real, ignored), "\n", time);
}

}  // namespace

CompiledCache::CompiledCache(std::string folder, std::uint64_t most_bytes)
    : files_(std::move(folder), ".compiled", std::string(kFormat), most_bytes) {}

std::string CompiledCache::key_of(const CompileJob& job) {
  CompileJob lasting = job;
  lasting.dump_folder.clear();
  std::string bytes = lasting.serialize();
  return fingerprint(cat(kFormat, "\n", plugin_identity(job.plugin), "\n", bytes.size(), "\n",
                         bytes, "\n", pjrt::compiler_variables()))
      .to_string();
}

std::optional<Compiled> CompiledCache::find(const std::string& key) const {
  std::optional<std::string> bytes = files_.find(key);
  if (!bytes) return std::nullopt;
  auto compiled = Compiled::deserialize(*bytes);
  if (!compiled.ok()) return std::nullopt;
  compiled->from_cache = true;
  return *std::move(compiled);
}

Result<void> CompiledCache::keep(const std::string& key, const Compiled& compiled) const {
  return files_.keep(key, compiled.serialize());
}

Result<std::uint64_t> CompiledCache::most_bytes_set() {
  MESHARD_ASSIGN_OR_RETURN(
      std::int64_t megabytes,
      environment_integer("MESHARD_COMPILED_CACHE_MB", 1024, 0, std::int64_t{1} << 40));
  return static_cast<std::uint64_t>(megabytes) << 20;
}

}  // namespace meshard
