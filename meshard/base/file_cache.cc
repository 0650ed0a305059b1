#include "meshard/base/file_cache.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// From the password database; empty if the user has no account there.
std::string home_of_account() {
  std::vector<char> space(1 << 14);
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, space.data(), space.size(), &found) != 0 ||
      found == nullptr || !fs::path(entry.pw_dir).is_absolute())
    return "";
  return entry.pw_dir;
}

}  // namespace

std::optional<std::string> process_variable(const char* name) {
  const char* value =
      ::secure_getenv(name);  // a setuid program must not load a plugin that the caller chose
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::string cache_folder(const ReadEnvironment& environment) {
  auto read = environment ? environment : ReadEnvironment(process_variable);
  if (auto cache = read("MESHARD_CACHE")) return *cache;
  if (auto cache = read("XDG_CACHE_HOME"); cache && fs::path(*cache).is_absolute())
    return (fs::path(*cache) / "meshard").string();
  std::string home = read("HOME").value_or("");
  if (!fs::path(home).is_absolute()) home = home_of_account();
  if (home.empty()) return "";
  return (fs::path(home) / ".cache" / "meshard").string();
}

namespace {

namespace fs = std::filesystem;

std::string account_name(uid_t user) {
  std::vector<char> space(1 << 14);
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(user, &entry, space.data(), space.size(), &found) != 0 || found == nullptr)
    return "";
  return entry.pw_name;
}

std::string owner_text(uid_t user) {
  std::string name = account_name(user);
  return name.empty() ? cat("user ", user) : cat("user ", name, " (", user, ")");
}

std::string mode_text(mode_t mode) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%04o", static_cast<unsigned>(mode & 07777));
  return digits;
}

// Checks both the group's member list and the accounts that have it as their primary group.
bool has_strangers(gid_t group, uid_t owner) {
  std::vector<char> space(1 << 16);
  struct group entry {};
  struct group* found = nullptr;
  if (::getgrgid_r(group, &entry, space.data(), space.size(), &found) != 0 || found == nullptr)
    return true;
  std::string own_name = account_name(owner), reader_name = account_name(::geteuid());
  auto is_trusted = [&](std::string_view name) {
    return name == "root" || name == own_name || name == reader_name;
  };
  for (char** member = entry.gr_mem; *member != nullptr; ++member)
    if (!is_trusted(*member)) return true;
  std::unique_ptr<FILE, int (*)(FILE*)> accounts(std::fopen("/etc/passwd", "re"), std::fclose);
  if (!accounts) return true;
  std::vector<char> account_space(1 << 14);
  passwd account{}, *next = nullptr;
  while (::fgetpwent_r(accounts.get(), &account, account_space.data(), account_space.size(),
                       &next) == 0)
    if (account.pw_gid == group && !is_trusted(account.pw_name)) return true;
  return false;
}

std::optional<FileFacts> facts_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  FileFacts facts{path, about.st_uid, about.st_gid, about.st_mode, true};
  if ((about.st_mode & S_IWGRP) != 0)
    facts.group_has_strangers = has_strangers(about.st_gid, about.st_uid);
  return facts;
}

// A user namespace that does not map all users shows the owner of every unmapped user's file as one
// overflow uid.
FileReader this_reader() {
  FileReader reader{::geteuid()};
  std::ifstream map("/proc/self/uid_map");
  unsigned inside = 0, outside = 0, count = 0;
  if (map >> inside >> outside >> count)
    reader.has_unmapped_users = !(inside == 0 && outside == 0 && count == 4294967295u);
  std::ifstream("/proc/sys/kernel/overflowuid") >> reader.unmapped_user;
  return reader;
}

Error untrusted(const FileFacts& facts, std::string_view why) {
  return Error(ErrorCode::kPermissionDenied,
               cat("[files] ", facts.path, " is not trusted: ", why, "; it belongs to ",
                   owner_text(facts.owner), " and has mode ", mode_text(facts.mode),
                   ". Change its owner or mode, or set MESHARD_TRUST_FILES=1 if this file system "
                   "has no owners"));
}

}  // namespace

Result<void> judge_trust(const std::vector<FileFacts>& chain, const FileReader& reader) {
  std::optional<uid_t> installer;
  for (const FileFacts& facts : chain) {
    bool unmapped = reader.has_unmapped_users && facts.owner == reader.unmapped_user &&
                    S_ISDIR(facts.mode) && &facts != &chain.front();
    if (facts.owner != 0 && facts.owner != reader.user && !unmapped) {
      if (reader.user != 0) return untrusted(facts, "another user owns it");
      if (installer && *installer != facts.owner)
        return untrusted(facts, cat("its owner differs from ", owner_text(*installer),
                                    ", who owns files in it"));
      installer = facts.owner;
    }
    bool sticky_folder = S_ISDIR(facts.mode) && (facts.mode & S_ISVTX) != 0;
    if (sticky_folder && &facts != &chain.front()) continue;
    if ((facts.mode & S_IWOTH) != 0) return untrusted(facts, "every user can write it");
    if ((facts.mode & S_IWGRP) != 0 && facts.group_has_strangers)
      return untrusted(facts, cat("the members of group ", facts.group, " can write it"));
  }
  return {};
}

Result<void> check_file_trust(const std::string& path) {
  // Not in a setuid program: the caller would choose what it trusts.
  if (const char* all = ::secure_getenv("MESHARD_TRUST_FILES"); all && std::string_view(all) == "1")
    return {};
  std::error_code error;
  fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  std::vector<FileFacts> chain;
  for (fs::path at = real;; at = at.parent_path()) {
    if (auto facts = facts_of(at.string())) chain.push_back(*std::move(facts));
    if (at == at.parent_path()) break;
  }
  if (error || chain.empty())
    return Error(ErrorCode::kNotFound,
                 cat("[files] cannot resolve the path ", path, ": ", error.message()));
  return judge_trust(chain, this_reader());
}

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
