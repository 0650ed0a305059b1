#include "meshard/io/weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "meshard/array/slice.h"
#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/graph/leaf.h"
#include "meshard/io/internal/checkpoint_index.h"
#include "meshard/io/internal/save_queue.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/runtime/sharded_tensor.h"

namespace meshard::io {
namespace {

using internal::CheckpointFiles;
using internal::CheckpointIndex;

// How often a checkpoint that is replaced again and again is opened anew.
constexpr int kMostReplacements = 100;

Error no_weights(std::string_view name, std::span<const std::string> names,
                 const std::string& path) {
  return Error(ErrorCode::kNotFound,
               cat("[io] no tensor \"", name, "\" in ", path, "; ", nearest_text(name, names),
                   " (number of tensors: ", names.size(), ")"));
}

Error no_match(std::string_view pattern, std::span<const std::string> names) {
  const bool has_class = pattern.find_first_of("[?") != std::string_view::npos;
  return Error(
      ErrorCode::kNotFound,
      cat("[io] the pattern \"", pattern, "\" matches no tensor; ", nearest_text(pattern, names),
          has_class ? ". Only `*` is special in a pattern: write an entry for each name "
                      "instead of [...] or ?"
                    : "",
          ". Pass strict = false to ignore it (number of tensors: ", names.size(), ")"));
}

// Changes whenever the checkpoint is replaced.
std::string state_of(const CheckpointFiles& files) {
  std::string state;
  for (const std::string& path : {files.index(), files.one_file()}) {
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0)
      state += cat(about.st_ino, ' ', about.st_size, ' ', about.st_mtim.tv_sec, ' ',
                   about.st_mtim.tv_nsec);
    state += ';';
  }
  return state;
}

// The tensors of a stack, or one tensor.
class Stack {
 public:
  /// @pre at least one tensor; equal types
  Stack(std::vector<const StoredTensor*> tensors, const Shape& sizes)
      : tensors_(std::move(tensors)), sizes_(sizes) {
    Dimensions all = sizes.sizes();
    for (std::int64_t size : tensors_[0]->type().shape) all.push_back(size);
    type_ = {tensors_[0]->type().dtype, Shape(std::move(all))};
  }

  const TensorType& type() const { return type_; }

  /// All elements, if their bytes follow each other in one file.
  std::optional<Result<HostArray>> view() const {
    for (const StoredTensor* each : tensors_)
      if (!each->is_whole() || each->parts()[0].file.path() != tensors_[0]->parts()[0].file.path())
        return std::nullopt;
    const SafetensorsFile& file = tensors_[0]->parts()[0].file;
    std::vector<std::string> names;
    for (const StoredTensor* each : tensors_) names.push_back(each->parts()[0].name);
    std::optional<Result<HostArray>> found =
        names.size() == 1 ? std::optional(file.array(names[0])) : file.consecutive(names);
    if (found && found->ok()) return Result<HostArray>((**found).reshaped(type_.shape));
    return found;
  }

  /// The elements in a box.
  Result<HostArray> read(const Box& box) const {
    auto stacked = static_cast<std::size_t>(sizes_.rank());
    Box layers, inner;
    for (std::size_t d = 0; d < box.size(); ++d) (d < stacked ? layers : inner).push_back(box[d]);
    const std::vector<std::int64_t> numbers = numbers_in(layers, sizes_.sizes());
    std::int64_t bytes =
        box_shape(inner).size() * static_cast<std::int64_t>(size_in_bytes(type_.dtype));
    auto tensor = [&](std::int64_t number) -> const StoredTensor& {
      return *tensors_[static_cast<std::size_t>(number)];
    };
    if (numbers.size() == 1) {
      MESHARD_ASSIGN_OR_RETURN(HostArray one, tensor(numbers[0]).read(inner));
      return one.reshaped(box_shape(box));
    }
    HostArray array = HostArray::uninitialized({type_.dtype, box_shape(box)});
    std::byte* at = array.mutable_bytes();
    for (std::int64_t number : numbers) {
      MESHARD_RETURN_IF_ERROR(tensor(number).read_into(inner, at));
      at += bytes;
    }
    return array;
  }

 private:
  std::vector<const StoredTensor*> tensors_;
  Shape sizes_;
  TensorType type_;
};

}  // namespace

Result<Weights> Weights::open(const std::string& path) {
  CheckpointFiles files(path);
  internal::SaveQueue::of_process().wait_for(files.key());
  for (int attempt = 0;; ++attempt) {
    std::string before = state_of(files);
    bool by_index = files.index() == path || files.index_counts();
    Result<Weights> weights = by_index ? open_index(files.index()) : open_file(files.one_file());
    if (weights) weights->path_ = path;
    // Files that the index names are removed when another index has taken its place.
    if (weights.ok() || attempt == kMostReplacements || state_of(files) == before) return weights;
  }
}

Result<bool> has_checkpoint(const std::string& path) {
  CheckpointFiles files(path);
  internal::SaveQueue::of_process().wait_for(files.key());
  const bool names_index = files.index() == path;
  // One form may be replaced by the other meanwhile, so the file is looked for again.
  for (const std::string& file : {files.one_file(), files.index(), files.one_file()}) {
    const bool is_index = file == files.index();
    if (names_index && !is_index) continue;
    struct stat about {};
    if (::stat(file.c_str(), &about) == 0) {
      if (!is_index || names_index || files.index_counts()) return true;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return Error(ErrorCode::kUnavailable,
                   cat("[", file, "] ", std::generic_category().message(errno)));
    }
  }
  return false;
}

Result<Weights> Weights::open_file(const std::string& path) {
  MESHARD_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  Weights weights;
  weights.metadata_ = file.metadata();
  for (const SafetensorsEntry& entry : file.entries())
    weights.tensors_.emplace(
        entry.name, StoredTensor(entry.type, {{file, entry.name, whole_box(entry.type.shape)}}));
  return weights;
}

Result<Weights> Weights::open_index(const std::string& path) {
  MESHARD_ASSIGN_OR_RETURN(CheckpointIndex index, CheckpointIndex::read(path));
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::map<std::string, SafetensorsFile> files;
  auto file_of = [&](const std::string& name) -> Result<SafetensorsFile> {
    if (auto found = files.find(name); found != files.end()) return found->second;
    Result<SafetensorsFile> file = SafetensorsFile::open(folder + name);
    if (!file) return file.error().with_note(cat("the file is listed in ", path));
    auto size = index.files.find(name);
    if (size != index.files.end() && size->second != file->size_in_bytes())
      return Error(ErrorCode::kDataLoss, cat("[", path, "] ", name, " has ", file->size_in_bytes(),
                                             " bytes; it was written with ", size->second));
    return files.emplace(name, *std::move(file)).first->second;
  };
  Weights weights;
  weights.metadata_ = index.metadata;
  for (const auto& [name, bytes] : index.files)
    if (Result<SafetensorsFile> file = file_of(name); !file) return file.error();
  for (const auto& [name, file_name] : index.whole) {
    MESHARD_ASSIGN_OR_RETURN(SafetensorsFile file, file_of(file_name));
    const SafetensorsEntry* entry = file.find(name);
    if (!entry)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", path, "] tensor \"", name, "\" is not in ", file_name));
    weights.tensors_.emplace(
        name, StoredTensor(entry->type, {{file, name, whole_box(entry->type.shape)}}));
  }
  for (const auto& [name, split] : index.split) {
    std::vector<StoredTensor::Part> parts;
    for (const auto& [box, part] : split.parts) {
      MESHARD_ASSIGN_OR_RETURN(SafetensorsFile file, file_of(part.file));
      std::string piece = internal::piece_name(name, box);
      const SafetensorsEntry* entry = file.find(piece);
      TensorType type{split.type.dtype, box_shape(part.box)};
      if (!entry || entry->type != type)
        return Error(ErrorCode::kInvalidArgument,
                     cat("[", path, "] tensor \"", piece, "\" must be ", type, " in ", part.file,
                         ", and is ", entry ? entry->type.to_string() : "not there"));
      parts.push_back({std::move(file), std::move(piece), part.box});
    }
    weights.tensors_.emplace(name, StoredTensor(split.type, std::move(parts)));
  }
  return weights;
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> out;
  for (const auto& each : tensors_) out.push_back(each.first);
  return out;
}

Result<TensorType> Weights::type(std::string_view name) const {
  MESHARD_ASSIGN_OR_RETURN(StoredTensor found, stored(name));
  return found.type();
}

Result<StoredTensor> Weights::stored(std::string_view name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) return no_weights(name, names(), path_);
  return found->second;
}

Result<Tensor> Weights::make(std::span<const std::string> names, const Shape& sizes,
                             const Sharding* sharding, SourceLocation where) const {
  std::vector<const StoredTensor*> tensors;
  for (const std::string& name : names) {
    auto found = tensors_.find(name);
    if (found == tensors_.end()) return no_weights(name, this->names(), path_).at(where);
    tensors.push_back(&found->second);
    if (found->second.type() != tensors[0]->type())
      return Error(ErrorCode::kInvalidArgument,
                   cat("[io] cannot stack \"", names[0], "\", ", tensors[0]->type(), ", and \"",
                       name, "\", ", found->second.type()),
                   where);
  }
  Stack stack(std::move(tensors), sizes);
  std::optional<Result<HostArray>> array = stack.view();
  if (!array && !sharding) array = stack.read(whole_box(stack.type().shape));
  if (array && !array->ok()) return array->error().at(where);
  try {
    if (!array)
      return ShardedTensor::from_callback(
                 stack.type(), *sharding, [&](const Box& box) { return stack.read(box).value(); },
                 where)
          .global();
    Tensor tensor = from_host(**std::move(array), where);
    return sharding ? mark_sharding(In(tensor, where), *sharding) : tensor;
  } catch (const Error& error) {
    return error.at(where);
  }
}

Result<Tensor> Weights::tensor(std::string_view name, SourceLocation where) const {
  std::string one(name);
  return make(std::span(&one, 1), {}, nullptr, where);
}

Result<Tensor> Weights::placed(std::string_view name, const Sharding& sharding,
                               SourceLocation where) const {
  std::string one(name);
  return make(std::span(&one, 1), {}, &sharding, where);
}

Result<Tensor> Weights::stacked(std::span<const std::string> names, const Shape& sizes,
                                SourceLocation where) const {
  return make(names, sizes, nullptr, where);
}

Result<Tensor> Weights::placed_stacked(std::span<const std::string> names, const Shape& sizes,
                                       const Sharding& sharding, SourceLocation where) const {
  return make(names, sizes, &sharding, where);
}

Result<Tensor> Weights::load_one(const std::string& name, const StoredTensor& stored,
                                 const std::vector<NamedSharding>& shardings,
                                 SourceLocation where) const {
  for (const NamedSharding& each : shardings) {
    if (!matches_name(each.names, name)) continue;
    try {
      auto rank = static_cast<std::size_t>(stored.type().rank());
      Result<Tensor> loaded = placed(name, Sharding(each.mesh, each.spec, rank, where), where);
      return loaded.ok() ? loaded : loaded.error().with_note(cat("while placing \"", name, "\""));
    } catch (const Error& error) {
      return error.with_note(cat("while placing \"", name, "\""));
    }
  }
  return tensor(name, where);
}

Result<std::map<std::string, Tensor>> Weights::load(const std::vector<NamedSharding>& shardings,
                                                    LoadOptions options,
                                                    SourceLocation where) const {
  for (const NamedSharding& each : shardings)
    if (options.strict && std::none_of(tensors_.begin(), tensors_.end(), [&](const auto& one) {
          return matches_name(each.names, one.first);
        }))
      return no_match(each.names, names()).at(where);
  std::map<std::string, Tensor> out;
  for (const auto& [name, stored] : tensors_) {
    Result<Tensor> loaded = load_one(name, stored, shardings, where);
    if (!loaded) return loaded.error();
    out.emplace(name, *std::move(loaded));
  }
  return out;
}

Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<NamedSharding>& shardings,
                                           LoadOptions options, SourceLocation where) {
  Result<Weights> weights = Weights::open(path);
  if (!weights) return weights.error().at(where);
  return weights->load(shardings, options, where);
}

}  // namespace meshard::io
