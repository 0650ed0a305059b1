#include "meshard/io/internal/checkpoint_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <random>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/part_file.h"
#include "meshard/io/internal/checkpoint_index.h"

namespace meshard::io::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnding = ".index.json";
constexpr std::string_view kFileEnding = ".safetensors";
constexpr std::string_view kNameInFolder = "model.safetensors";
constexpr std::size_t kIdDigits = 16;

bool is_existing_folder(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

// Removes the characters that `matches` accepts from the front.
template <class Matches>
bool take(std::string_view& text, std::size_t count, Matches matches) {
  if (text.size() < count) return false;
  for (char c : text.substr(0, count))
    if (!matches(c)) return false;
  text.remove_prefix(count);
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// At least five digits: `00001`.
bool take_number(std::string_view& text) {
  if (!take(text, 5, is_digit)) return false;
  while (!text.empty() && is_digit(text[0])) text.remove_prefix(1);
  return true;
}

// Nothing if the index cannot be read: then every file may be needed.
std::optional<std::set<std::string>> files_named_by(const std::string& index) {
  std::set<std::string> names;
  Result<CheckpointIndex> now = CheckpointIndex::read(index);
  if (!now.ok() && now.error().code() != ErrorCode::kNotFound) return {};
  if (!now.ok()) return names;
  for (const auto& [name, bytes] : now->files) names.insert(name);
  for (const auto& [tensor, name] : now->whole) names.insert(name);
  return names;
}

}  // namespace

CheckpointFiles::CheckpointFiles(std::string_view path) {
  one_file_ = path;
  if (path.ends_with('/') || is_existing_folder(one_file_)) {
    names_folder_ = true;
    one_file_ += path.ends_with('/') ? "" : "/";
    one_file_ += kNameInFolder;
  } else if (path.ends_with(kIndexEnding)) {
    one_file_.resize(one_file_.size() - kIndexEnding.size());
  }
  std::size_t slash = one_file_.rfind('/');
  folder_ = slash == std::string::npos ? "" : one_file_.substr(0, slash + 1);
  stem_ = one_file_.substr(folder_.size());
  if (stem_.ends_with(kFileEnding)) stem_.resize(stem_.size() - kFileEnding.size());
}

bool CheckpointFiles::index_counts() const {
  struct stat about {};
  if (::stat(index().c_str(), &about) != 0) return false;
  if (names_folder_) return true;
  Result<CheckpointIndex> read = CheckpointIndex::read(index());
  return read.ok() ? read->is_ours : read.error().code() != ErrorCode::kNotFound;
}

std::string CheckpointFiles::key() const {
  std::error_code error;
  fs::path whole = fs::absolute(one_file_, error);
  return error ? one_file_ : whole.lexically_normal().string();
}

std::string CheckpointFiles::piece_file(std::string_view id, int number, int count) const {
  auto digits = [](int n) {
    std::string text = cat(n);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return cat(stem_, '-', id, '-', digits(number + 1), "-of-", digits(count), kFileEnding);
}

bool CheckpointFiles::is_piece_file(std::string_view name) const {
  return take(name, stem_) && take(name, "-") && take(name, kIdDigits, is_hex) && take(name, "-") &&
         take_number(name) && take(name, "-of-") && take_number(name) && take(name, kFileEnding) &&
         (name.empty() || name.starts_with(".part-"));
}

void CheckpointFiles::remove_unused(const std::set<std::string>& replaced) const {
  for (const std::string& path : {index(), one_file_}) remove_stale_parts(path);
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator at(folder_.empty() ? "." : folder_, error), end; !error && at != end;
       at.increment(error))
    if (std::string name = at->path().filename().string(); is_piece_file(name))
      found.push_back(std::move(name));
  if (found.empty()) return;
  std::optional<std::set<std::string>> named = files_named_by(index());
  for (const std::string& name : found) {
    if (!named || named->contains(name)) continue;
    std::string path = folder_ + name;
    int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    bool in_use = !locked && errno == EWOULDBLOCK;
    // A writer holds its lock until the index names its file, so what was locked only now may have
    // been published in between.
    named = files_named_by(index());
    bool unused = named && !named->contains(name) && !in_use;
    if (unused && (locked || replaced.contains(name))) ::unlink(path.c_str());
    ::close(file);
  }
}

std::string new_save_id() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string id;
  for (std::size_t i = 0; i < kIdDigits; ++i) id += kDigits[random() % kDigits.size()];
  return id;
}

std::string piece_name(std::string_view tensor, std::string_view box) { return cat(tensor, box); }

}  // namespace meshard::io::internal
