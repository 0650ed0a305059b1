// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/compiled_cache.h"

#include <cstdlib>
#include <filesystem>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/target/temporary_folder.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// Grows when the bytes change their meaning.
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

// A file is the header, the fingerprint of the rest, and the rest.
std::optional<Compiled> CompiledCache::find(const std::string& key) const {
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
  return *std::move(compiled);
}

Result<void> CompiledCache::keep(const std::string& key, const Compiled& compiled) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    return Error(ErrorCode::kUnavailable,
                 cat("[cache] cannot make the folder ", folder_, ": ", error.message()));
  std::string bytes = compiled.serialize();
  return write_whole_file(path_of(key), cat(kCacheHeader, fingerprint(bytes).to_string(), bytes));
}

}  // namespace meshard
