// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/compiled_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/file_trust.h"
#include "meshard/base/fingerprint.h"
#include "meshard/base/part_file.h"
#include "meshard/target/temporary_folder.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// Format version: increases when the meaning of the bytes changes.
constexpr std::string_view kCacheHeader = "meshard compiled 1\n";

std::string plugin_identity(const std::string& plugin) {
  std::error_code ignored;
  fs::path real = fs::canonical(plugin, ignored);
  auto time = fs::last_write_time(real, ignored).time_since_epoch().count();
  return cat(real.string(), "\n", fs::file_size(real, ignored), "\n", time);
}

}  // namespace

std::string CompiledCache::key_of(const CompileJob& job) {
  CompileJob lasting = job;
  lasting.dump_folder.clear();
  std::string text = cat(kCacheHeader, plugin_identity(job.plugin), "\n",
                         lasting.serialize().size(), "\n", lasting.serialize());
  for (const char* name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS", "TPU_LIBRARY_PATH"})
    if (const char* value = std::getenv(name)) text += cat("\n", name, "=", value);
  return fingerprint(text).to_string();
}

std::string CompiledCache::path_of(const std::string& key) const {
  return (fs::path(folder_) / (key + ".compiled")).string();
}

// File format: the header, the fingerprint of the payload, the payload.
std::optional<Compiled> CompiledCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  auto bytes = read_whole_file(path_of(key));
  if (!bytes.ok()) return std::nullopt;
  std::string_view rest = *bytes;
  constexpr std::size_t kDigits = 32;
  if (!rest.starts_with(kCacheHeader) || rest.size() < kCacheHeader.size() + kDigits)
    return std::nullopt;
  rest.remove_prefix(kCacheHeader.size());
  std::string_view sum = rest.substr(0, kDigits);
  rest.remove_prefix(kDigits);
  if (fingerprint(rest).to_string() != sum) return std::nullopt;
  auto compiled = Compiled::deserialize(rest);
  if (!compiled.ok()) return std::nullopt;
  compiled->from_cache = true;
  // Records the time of last use; a read-only cache keeps the old one.
  ::utimensat(AT_FDCWD, path_of(key).c_str(), nullptr, 0);
  return *std::move(compiled);
}

Result<void> CompiledCache::keep(const std::string& key, const Compiled& compiled) const {
  if (folder_.empty()) return {};
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    return Error(ErrorCode::kUnavailable,
                 cat("[cache] cannot make the folder ", folder_, ": ", error.message()));
  std::string bytes = compiled.serialize();
  MESHARD_RETURN_IF_ERROR(
      write_whole_file(path_of(key), cat(kCacheHeader, fingerprint(bytes).to_string(), bytes)));
  shrink();
  return {};
}

Result<std::uint64_t> CompiledCache::most_bytes_set() {
  MESHARD_ASSIGN_OR_RETURN(
      std::int64_t megabytes,
      environment_integer("MESHARD_COMPILED_CACHE_MB", 1024, 0, std::int64_t{1} << 40));
  return static_cast<std::uint64_t>(megabytes) << 20;
}

Result<void> CompiledCache::check_trust() const {
  if (folder_.empty()) return {};
  return check_file_trust(folder_);
}

// Other processes may shrink the cache at the same time: a file that is already gone counts as
// removed, and an open file stays readable.
void CompiledCache::shrink() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".compiled") {
      // A partial file left by a killed process, whose key was never compiled again.
      std::string name = at->path().string();
      if (auto part = name.rfind(".part-"); part != std::string::npos)
        remove_stale_parts(name.substr(0, part));
      continue;
    }
    std::error_code gone;
    Entry entry{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    bytes += entry.bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (bytes <= most_bytes_) return;
    fs::remove(entry.path, error);
    bytes -= entry.bytes;
  }
}

}  // namespace meshard
