#include "meshard/base/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "meshard/base/cat.h"
#include "meshard/base/file_trust.h"
#include "meshard/base/fingerprint.h"
#include "meshard/base/part_file.h"
#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 32;  // of a fingerprint
constexpr int kWritesBetweenListings = 63;

}  // namespace

FileCache::FileCache(std::string folder, std::string extension, std::string format,
                     std::uint64_t most_bytes)
    : folder_(std::move(folder)),
      extension_(std::move(extension)),
      format_(std::move(format)),
      most_bytes_(most_bytes) {}

Result<void> FileCache::check_trust() const {
  if (folder_.empty()) return {};
  return check_file_trust(folder_);
}

std::string FileCache::path_of(const std::string& key) const {
  return (fs::path(folder_) / (key + extension_)).string();
}

// A file is the format line, the fingerprint of the entry, and the entry.
std::optional<std::string> FileCache::peek(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  Result<std::string> bytes = read_whole_file(path_of(key));
  if (!bytes.ok()) return std::nullopt;
  std::string_view rest = *bytes;
  if (rest.size() < format_.size() + 1 + kDigits || !rest.starts_with(format_) ||
      rest[format_.size()] != '\n')
    return std::nullopt;
  rest.remove_prefix(format_.size() + 1);
  std::string_view sum = rest.substr(0, kDigits);
  rest.remove_prefix(kDigits);
  if (fingerprint(rest).to_string() != sum) return std::nullopt;
  return std::string(rest);
}

std::optional<std::string> FileCache::find(const std::string& key) const {
  std::optional<std::string> bytes = peek(key);
  // Records the time of last use; a read-only cache keeps the old one.
  if (bytes) ::utimensat(AT_FDCWD, path_of(key).c_str(), nullptr, 0);
  return bytes;
}

Result<void> FileCache::keep(const std::string& key, std::string_view bytes) const {
  if (folder_.empty()) return {};
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    return Error(ErrorCode::kUnavailable,
                 cat("[cache] cannot make the folder ", folder_, ": ", error.message()));
  MESHARD_RETURN_IF_ERROR(
      write_whole_file(path_of(key), cat(format_, "\n", fingerprint(bytes).to_string(), bytes)));
  std::lock_guard lock(known_->mutex);
  known_->bytes += format_.size() + 1 + kDigits + bytes.size();
  if (known_->writes > 0 && known_->bytes <= most_bytes_) {
    --known_->writes;
    return {};
  }
  known_->bytes = shrink();
  known_->writes = kWritesBetweenListings;
  return {};
}

std::vector<std::string> FileCache::keys(std::string_view prefix) const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == extension_)
      if (std::string key = at->path().stem().string(); key.starts_with(prefix))
        found.push_back(std::move(key));
  return found;
}

std::uint64_t FileCache::bytes() const {
  std::uint64_t bytes = 0;
  for (const std::string& key : keys()) {
    std::error_code gone;
    std::uint64_t size = fs::file_size(path_of(key), gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

// Other processes may shrink the cache at the same time: a file that is already gone counts as
// removed, and an open file stays readable.
std::uint64_t FileCache::shrink() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != extension_) {
      // A partial file left by a killed process, whose key was never written again.
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
    if (bytes <= most_bytes_) break;
    fs::remove(entry.path, error);
    bytes -= entry.bytes;
  }
  return bytes;
}

}  // namespace meshard
