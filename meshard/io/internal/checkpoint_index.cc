#include "meshard/io/internal/checkpoint_index.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/json_reader.h"
#include "meshard/base/json_writer.h"
#include "meshard/base/whole_file.h"
#include "meshard/io/internal/read_type.h"
#include "meshard/io/safetensors.h"

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

namespace {

using Kind = JsonValue::Kind;
using Split = CheckpointIndex::Split;

constexpr std::uint64_t kVersion = 1;
constexpr std::string_view kTotalSize = "total_size";

// Only plain file names are allowed, so that an index can refer only to files in its folder.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// `[0:2, 0:4]`
std::optional<Box> read_box(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) return {};
  std::string_view inner = text.substr(1, text.size() - 2);
  Box box;
  while (!inner.empty()) {
    std::string_view one = inner.substr(0, inner.find(", "));
    Result<DimensionSlice> slice = DimensionSlice::parse(one);
    if (!slice.ok()) return {};
    box.push_back(*slice);
    if (one.size() == inner.size()) break;
    inner.remove_prefix(one.size() + 2);
  }
  // The text is the name of the part, so it must be the only one for the box.
  if (to_string(box) != text) return {};
  return box;
}

class IndexReader {
 public:
  explicit IndexReader(std::string_view place) : place_(place) {}

  Result<CheckpointIndex> read(const JsonValue& json) {
    const JsonValue *map = json.find("weight_map"), *ours = json.find("meshard");
    if (!map || !map->is(Kind::kObject))
      return bad("not a safetensors index: it has no weight_map object");
    CheckpointIndex index;
    for (const auto& [name, value] : map->members) {
      MESHARD_ASSIGN_OR_RETURN(index.whole[name], file_name(name, value));
    }
    if (const JsonValue* metadata = json.find("metadata"))
      for (const auto& [key, value] : metadata->members) {
        if (key == kTotalSize)
          index.total_size = value.whole_number().value_or(0);
        else if (value.is(Kind::kString) || value.is(Kind::kNumber))
          index.metadata[key] = value.text;
      }
    if (ours) MESHARD_RETURN_IF_ERROR(read_ours(*ours, index));
    return index;
  }

 private:
  template <class... Parts>
  Error bad(const Parts&... parts) const {
    return Error(ErrorCode::kInvalidArgument, cat("[", place_, "] ", parts...));
  }

  Result<std::string> file_name(const std::string& tensor, const JsonValue& value) const {
    if (!value.is(Kind::kString) || !is_plain_file_name(value.text))
      return bad("tensor \"", tensor, "\" must be in a file in the folder of the index, got \"",
                 value.text, "\"");
    return value.text;
  }

  Result<void> read_ours(const JsonValue& json, CheckpointIndex& index) const {
    const JsonValue *version = json.find("version"), *files = json.find("files"),
                    *split = json.find("split");
    std::optional<std::uint64_t> number = version ? version->whole_number() : std::nullopt;
    if (!number || !files || !files->is(Kind::kObject) || !split || !split->is(Kind::kObject))
      return bad("its \"meshard\" must have a version, files, and split tensors");
    if (*number != kVersion)
      return Error(ErrorCode::kUnimplemented,
                   cat("[", place_, "] version ", *number,
                       " of checkpoints in several files is unknown; this meshard reads version ",
                       kVersion));
    index.is_ours = true;
    for (const auto& [name, value] : files->members) {
      std::optional<std::uint64_t> bytes = value.whole_number();
      if (!is_plain_file_name(name) || !bytes) return bad("invalid file \"", name, "\"");
      index.files[name] = *bytes;
    }
    for (const auto& [name, value] : split->members) {
      if (index.whole.contains(name)) return bad("tensor \"", name, "\" is there twice");
      MESHARD_ASSIGN_OR_RETURN(index.split[name], read_split(name, value));
    }
    auto check = [&](const std::string& name, const std::string& file) -> Result<void> {
      if (index.files.contains(file)) return {};
      return bad("tensor \"", name, "\" is in \"", file, "\", which is not among its files");
    };
    for (const auto& [name, file] : index.whole) MESHARD_RETURN_IF_ERROR(check(name, file));
    for (const auto& [name, tensor] : index.split)
      for (const auto& [box, part] : tensor.parts) MESHARD_RETURN_IF_ERROR(check(name, part.file));
    return {};
  }

  Result<Split> read_split(const std::string& name, const JsonValue& json) const {
    const JsonValue *dtype = json.find("dtype"), *shape = json.find("shape"),
                    *parts = json.find("parts");
    if (!dtype || !dtype->is(Kind::kString) || !shape || !shape->is(Kind::kArray) || !parts ||
        !parts->is(Kind::kObject))
      return bad("tensor \"", name, "\" must have a dtype, a shape and parts");
    MESHARD_ASSIGN_OR_RETURN(TensorType type, read_type(place_, name, *dtype, *shape));
    if (!safetensors_bytes(type.shape.sizes(), type.dtype))
      return bad("tensor \"", name, "\" is too large");
    Split out{std::move(type), {}};
    for (const auto& [text, file] : parts->members) {
      std::optional<Box> box = read_box(text);
      bool fits = box && static_cast<int>(box->size()) == out.type.rank();
      for (std::size_t d = 0; fits && d < box->size(); ++d)
        fits = (*box)[d].start >= 0 && (*box)[d].start < (*box)[d].stop &&
               (*box)[d].stop <= out.type.shape[static_cast<int>(d)];
      if (!fits) return bad("tensor \"", name, "\", ", out.type, ", has an invalid part ", text);
      MESHARD_ASSIGN_OR_RETURN(std::string in, file_name(name, file));
      out.parts[text] = {*box, std::move(in)};
    }
    return out;
  }

  std::string_view place_;
};

// Two parts that overlap. Along the dimension with the most distinct starts, a part is compared
// only with those that begin before it ends.
std::optional<std::pair<const Box*, const Box*>> find_overlap(const Split& tensor) {
  std::vector<const Box*> boxes;
  for (const auto& [text, part] : tensor.parts) boxes.push_back(&part.box);
  std::size_t along = 0, most = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(tensor.type.rank()); ++d) {
    std::set<std::int64_t> starts;
    for (const Box* box : boxes) starts.insert((*box)[d].start);
    if (starts.size() > most) along = d, most = starts.size();
  }
  if (tensor.type.rank() > 0)
    std::sort(boxes.begin(), boxes.end(),
              [&](const Box* a, const Box* b) { return (*a)[along].start < (*b)[along].start; });
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t k = i + 1; k < boxes.size(); ++k) {
      if (tensor.type.rank() > 0 && (*boxes[k])[along].start >= (*boxes[i])[along].stop) break;
      if (overlap(*boxes[i], *boxes[k])) return std::pair(boxes[i], boxes[k]);
    }
  return {};
}

}  // namespace

Result<CheckpointIndex> CheckpointIndex::read(const std::string& path) {
  MESHARD_ASSIGN_OR_RETURN(std::string text, read_whole_file(path));
  return parse(text, path);
}

Result<CheckpointIndex> CheckpointIndex::parse(std::string_view text, std::string_view place) {
  MESHARD_ASSIGN_OR_RETURN(CheckpointIndex index, parse_of_writer(text, place));
  MESHARD_RETURN_IF_ERROR(index.check_parts(place));
  return index;
}

Result<CheckpointIndex> CheckpointIndex::parse_of_writer(std::string_view text,
                                                         std::string_view place) {
  MESHARD_ASSIGN_OR_RETURN(JsonValue json, read_json(text, place));
  return IndexReader(place).read(json);
}

std::string CheckpointIndex::to_json() const {
  JsonWriter json(1);
  json.begin_object().key("metadata").begin_object().member(kTotalSize, total_size);
  for (const auto& [key, value] : metadata)
    if (key != kTotalSize) json.member(key, value);
  json.end_object().key("weight_map").begin_object();
  for (const auto& [name, file] : whole) json.member(name, file);
  json.end_object().key("meshard").begin_object().member("version", kVersion);
  json.key("files").begin_object();
  for (const auto& [name, bytes] : files) json.member(name, bytes);
  json.end_object().key("split").begin_object();
  for (const auto& [name, tensor] : split) {
    json.key(name).begin_object();
    json.member("dtype", safetensors_name(tensor.type.dtype)).key("shape").begin_array();
    for (std::int64_t size : tensor.type.shape) json.value(size);
    json.end_array().key("parts").begin_object();
    for (const auto& [box, part] : tensor.parts) json.member(box, part.file);
    json.end_object().end_object();
  }
  json.end_object().end_object().end_object();
  return std::move(json).text();
}

Result<void> CheckpointIndex::merge(const CheckpointIndex& other) {
  auto twice = [](const std::string& name, std::string_view part) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[io] two processes have written the tensor \"", name, "\"", part));
  };
  for (const auto& [name, file] : other.whole)
    if (split.contains(name) || !whole.emplace(name, file).second) return twice(name, "");
  for (const auto& [name, tensor] : other.split) {
    if (whole.contains(name)) return twice(name, "");
    auto [known, is_new] = split.emplace(name, tensor);
    if (is_new) continue;
    if (known->second.type != tensor.type)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[io] the tensor \"", name, "\" is ", known->second.type,
                       " in one process and ", tensor.type, " in another"));
    for (const auto& [box, part] : tensor.parts)
      if (!known->second.parts.emplace(box, part).second) return twice(name, box);
  }
  for (const auto& [name, bytes] : other.files) files[name] = bytes;
  total_size += other.total_size;
  return {};
}

Result<void> CheckpointIndex::check_parts(std::string_view place) const {
  for (const auto& [name, tensor] : split) {
    if (auto both = find_overlap(tensor))
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", place, "] the parts ", to_string(*both->first), " and ",
                       to_string(*both->second), " of \"", name, "\", ", tensor.type, ", overlap"));
    std::int64_t covered = 0;
    for (const auto& [text, part] : tensor.parts) covered += box_shape(part.box).size();
    if (covered != tensor.type.shape.size())
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", place, "] the parts of \"", name, "\", ", tensor.type, ", have only ",
                       covered, " of its ", tensor.type.shape.size(), " elements"));
  }
  return {};
}

}  // namespace meshard::io::internal
