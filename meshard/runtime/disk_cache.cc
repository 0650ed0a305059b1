#include "meshard/runtime/disk_cache.h"

#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "meshard/base/advice.h"
#include "meshard/base/environment.h"
#include "meshard/base/fingerprint.h"
#include "meshard/base/packed_fields.h"
#include "meshard/base/threads.h"
#include "meshard/base/whole_file.h"
#include "meshard/pjrt/plugin_search.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// Increases when the meaning of the bytes changes.
constexpr const char* kFormat = "meshard program 4";

// An entry as it is in a file.
struct KeptEntry {
  std::string environment, signature, interface, executable;
  MESHARD_FIELDS(environment, signature, interface, executable)
};

// A plugin that was fetched is known by its hash, any other one by its place, size and time.
std::string plugin_line(const std::string& path) {
  std::error_code ignored;
  fs::path real = fs::canonical(path, ignored);
  auto time = fs::last_write_time(real, ignored).time_since_epoch().count();
  if (Result<std::string> text = read_whole_file(real.string() + ".fetched"); text.ok())
    if (auto record = pjrt::FetchedRecord::parse(*text); record.ok())
      return cat("plugin sha256 ", record->sha256);
  return cat("plugin ", real.string(), " of ", fs::file_size(real, ignored), " bytes, time ", time);
}

// The instruction set of the first core: `AMD EPYC 9B14, instructions 4711...`.
std::string cpu_model() {
  std::ifstream facts("/proc/cpuinfo");
  std::string model = "unknown", flags;
  for (std::string line; std::getline(facts, line) && !line.empty();) {
    std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    if (line.starts_with("model name")) model = line.substr(colon + 2);
    if (line.starts_with("flags") || line.starts_with("Features")) flags = line.substr(colon + 2);
  }
  return cat(model, ", instructions ", fingerprint(flags));
}

std::string environment_of(const pjrt::Client& client) {
  std::string lines = cat(plugin_line(client.plugin().path()), "\n", "platform ", client.platform(),
                          " ", client.platform_version(), "\n");
  Result<std::string> kind = client.addressable_devices()[0]->description().kind();
  append(lines, cat("device ", kind.ok() ? *kind : std::string("unknown"), "\n"));
  if (client.platform() == "cpu") {
    static const std::string cpu = cpu_model();
    append(lines, cat("cpu ", cpu, "\n", "cores ", internal::usable_cores(), "\n"));
  }
  return lines + pjrt::compiler_variables();
}

// `compiled before with "cores 8", now "cores 2"`
std::string first_difference(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before), new_lines(now);
  std::string old_line, new_line;
  while (true) {
    bool more_old = static_cast<bool>(std::getline(old_lines, old_line));
    bool more_new = static_cast<bool>(std::getline(new_lines, new_line));
    if (!more_old && !more_new) return "its entry is damaged";
    if (more_old && more_new && old_line == new_line) continue;
    return cat("compiled before with \"", more_old ? old_line : "", "\", now \"",
               more_new ? new_line : "", "\"");
  }
}

std::string file_key(const DiskCache::Key& key) {
  return cat(key.program, "-", fingerprint(key.environment));
}

struct Misses {
  std::mutex mutex;
  std::deque<std::string> reasons;
};

Misses& misses() {
  static auto* instance = new Misses;
  return *instance;
}

constexpr std::size_t kMostReasons = 100;

}  // namespace

Result<DiskCache> DiskCache::of_process() {
  MESHARD_ASSIGN_OR_RETURN(
      std::int64_t megabytes,
      environment_integer("MESHARD_PROGRAM_CACHE_MB", 1024, 0, std::int64_t{1} << 40));
  std::string folder = cache_folder();
  DiskCache cache(folder.empty() ? "" : (fs::path(folder) / "programs").string(),
                  static_cast<std::uint64_t>(megabytes) << 20);
  if (!cache.is_on()) return cache;
  Result<void> trusted = cache.files_.check_trust();
  if (trusted.ok()) return cache;
  internal::advise({"runtime.disk_cache",
                    cat("[cache] compiled programs are not kept: ", trusted.error().message()),
                    {}});
  return DiskCache("", 0);
}

DiskCache::DiskCache(std::string folder, std::uint64_t most_bytes)
    : files_(std::move(folder), ".program", kFormat, most_bytes) {}

DiskCache::Key DiskCache::key_of(const pjrt::Client& client, const LoweredModule& lowered,
                                 const pjrt::CompileOptions& options) {
  // The devices are chosen when the program is loaded.
  pjrt::CompileOptions anywhere = options;
  for (std::size_t i = 0; i < anywhere.device_assignment.size(); ++i)
    anywhere.device_assignment[i] = static_cast<int>(i);
  std::string bytes = anywhere.serialize();
  Fingerprint program = fingerprint(cat(bytes.size(), "\n", bytes, lowered.text));
  return {lowered.name, program.to_string(), environment_of(client)};
}

std::optional<DiskCache::Entry> DiskCache::find(const Key& key) const {
  std::optional<std::string> bytes = files_.find(file_key(key));
  if (!bytes) {
    internal::record_disk_miss(cat('"', key.name, "\": ", why_not(key)));
    return std::nullopt;
  }
  Result<KeptEntry> kept = from_packed<KeptEntry>(*bytes, "cache");
  if (kept.ok() && kept->environment == key.environment && !kept->executable.empty())
    if (auto signature = pjrt::ExecutableSignature::parse(kept->signature); signature.ok())
      return Entry{std::move(kept->executable), *std::move(signature), std::move(kept->interface)};
  internal::record_disk_miss(cat('"', key.name, "\": its entry is damaged"));
  return std::nullopt;
}

Result<void> DiskCache::keep(const Key& key, const Entry& entry) const {
  return files_.keep(file_key(key),
                     to_packed(KeptEntry{key.environment, entry.signature.to_string(),
                                         entry.interface, entry.executable}));
}

std::string DiskCache::why_not(const Key& key) const {
  for (const std::string& other : files_.keys(key.program)) {
    std::optional<std::string> bytes = files_.peek(other);
    if (!bytes) continue;
    if (auto kept = from_packed<KeptEntry>(*bytes, "cache"); kept.ok())
      return first_difference(kept->environment, key.environment);
  }
  return "not compiled before";
}

std::vector<std::string> disk_misses() {
  std::lock_guard lock(misses().mutex);
  return {misses().reasons.begin(), misses().reasons.end()};
}

void internal::record_disk_miss(std::string reason) {
  if (log_level() == LogLevel::kInfo) std::fprintf(stderr, "[cache] %s\n", reason.c_str());
  std::lock_guard lock(misses().mutex);
  misses().reasons.push_back(std::move(reason));
  if (misses().reasons.size() > kMostReasons) misses().reasons.pop_front();
}

}  // namespace meshard
