#include "meshard/io/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "meshard/array/slice.h"
#include "meshard/base/cat.h"
#include "meshard/base/json_reader.h"
#include "meshard/base/name_pattern.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/io/new_file.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/gather.h"
#include "meshard/runtime/shards.h"

namespace meshard::io {
namespace {

constexpr std::string_view kIndexEnding = ".index.json";
constexpr const char* kIndexOfFolder = "/model.safetensors.index.json";
constexpr const char* kFileOfFolder = "/model.safetensors";

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool is_folder(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

bool exists(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0;
}

Error no_tensor(std::string_view name, std::string_view path, std::size_t count) {
  return Error(ErrorCode::kNotFound,
               cat("[io] no tensor \"", name, "\" in ", path, " (number of tensors: ", count, ")"));
}

// The file of each tensor, by tensor name, from an index:
// `{"weight_map": {"w": "model-00001-of-00002.safetensors"}}`.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  Result<JsonValue> json = read_json(text_of(*file), path);
  if (!json) return json.error();
  auto bad = [&](std::string_view what) {
    return Error(ErrorCode::kInvalidArgument, cat("[", path, "] ", what));
  };
  const JsonValue* map = json->find("weight_map");
  if (!map || !map->is(JsonValue::Kind::kObject))
    return bad("not a safetensors index: it has no weight_map object");
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : map->members) {
    // Only plain file names are allowed, so that an index can refer only to files in its folder.
    if (!value.is(JsonValue::Kind::kString) || value.text.empty() || value.text == ".." ||
        value.text.find('/') != std::string::npos || value.text.find('\0') != std::string::npos)
      return bad(cat("tensor \"", name, "\" must be in a file in the folder of the index, got \"",
                     value.text, "\""));
    files[name] = value.text;
  }
  return files;
}

// Writes one part of a tensor to its positions in the file.
void write_part(const HostArray& part, const Box& box, const TensorType& type, std::byte* data) {
  if (part.size() == 0) return;
  plan_scatter(part.bytes(), data, type.shape, box, size_in_bytes(type.dtype)).run();
}

void write_tensor(const Tensor& tensor, std::byte* data, SourceLocation where) {
  const TensorType& type = tensor.type();
  std::vector<LocalShard> shards = local_shards(tensor, where);
  if (shards.empty()) return write_part(tensor.to_host(where), whole_box(type.shape), type, data);
  for (const LocalShard& shard : shards)
    if (shard.replica_id() == 0) write_part(shard.data(where), shard.box(), type, data);
}

// The type without its first `stacked` dimensions.
TensorType type_of_one(const TensorType& type, std::size_t stacked) {
  Dimensions sizes;
  for (std::size_t d = stacked; d < static_cast<std::size_t>(type.rank()); ++d)
    sizes.push_back(type.shape[static_cast<int>(d)]);
  return {type.dtype, Shape(std::move(sizes))};
}

// The outcome of process 0, in all processes. Called by all of them in the same order.
Result<void> share_outcome(Result<void> outcome) {
  static std::atomic<int> calls{0};
  std::string key = cat("meshard/saved/", calls++);
  Processes run = processes();
  if (run.rank() == 0) {
    MESHARD_RETURN_IF_ERROR(run.store().put(key, outcome.ok() ? "" : outcome.error().message()));
    return outcome;
  }
  MESHARD_ASSIGN_OR_RETURN(std::string failure, run.store().get(key));
  if (failure.empty()) return {};
  return Error(ErrorCode::kUnavailable, cat("process 0 could not write: ", failure));
}

Result<void> save_or_throw(const std::string& path, std::span<const internal::NamedTensors> tensors,
                           const std::map<std::string, std::string>& metadata,
                           SourceLocation where) {
  std::vector<SafetensorsEntry> entries;
  std::vector<Tensor> values;
  std::map<std::string_view, const Tensor*> by_first_name;
  for (const internal::NamedTensors& each : tensors) {
    if (each.names.empty()) continue;
    TensorType type = type_of_one(each.tensor.type(where), each.stacked);
    for (const std::string& name : each.names) entries.push_back({name, type, 0, 0});
    values.push_back(each.tensor);
    by_first_name[each.names[0]] = &each.tensor;
  }
  Result<std::string> header = write_safetensors_header(entries, metadata);
  if (!header) return header.error();
  compute(values, where);
  std::set<int> holders;
  for (const Tensor& value : values)
    for (int process : processes_with_shards(value)) holders.insert(process);
  // A process that has all shards needs no other one.
  if (holders.size() == 1 && *holders.begin() != processes().rank()) return {};
  if (holders.size() > 1) {
    // Process 0 writes what it receives from the others, tensor by tensor.
    bool writes = processes().rank() == 0;
    std::uint64_t size = header->size() + (entries.empty() ? 0 : entries.back().end);
    std::optional<Result<NewFile>> file;
    if (writes) file.emplace(NewFile::create(path, size));
    if (writes && file->ok()) std::memcpy((*file)->data(), header->data(), header->size());
    for (const SafetensorsEntry& entry : entries) {
      auto found = by_first_name.find(entry.name);
      if (found == by_first_name.end()) continue;
      const TensorType& type = found->second->type();
      std::optional<HostArray> whole = gather_to(*found->second, 0, where);
      if (writes && file->ok())
        write_part(*whole, whole_box(type.shape), type,
                   (*file)->data() + header->size() + entry.begin);
    }
    Result<void> written;
    if (writes) written = file->ok() ? (*file)->commit() : Result<void>(file->error());
    return share_outcome(std::move(written));
  }
  std::uint64_t bytes = header->size() + (entries.empty() ? 0 : entries.back().end);
  Result<NewFile> file = NewFile::create(path, bytes);
  if (!file) return file.error();
  std::memcpy(file->data(), header->data(), header->size());
  for (const SafetensorsEntry& entry : entries)
    if (auto found = by_first_name.find(entry.name); found != by_first_name.end())
      write_tensor(*found->second, file->data() + header->size() + entry.begin, where);
  return file->commit();
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.error();
  Result<SafetensorsHeader> header = read_safetensors_header(text_of(*mapped), path);
  if (!header) return header.error();
  SafetensorsFile file(*std::move(mapped));
  file.header_ = std::make_shared<const SafetensorsHeader>(*std::move(header));
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < file.entries().size(); ++i) by_name[file.entries()[i].name] = i;
  file.by_name_ =
      std::make_shared<const std::map<std::string_view, std::size_t>>(std::move(by_name));
  return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  auto found = by_name_->find(name);
  return found == by_name_->end() ? nullptr : &entries()[found->second];
}

Result<HostArray> SafetensorsFile::array(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (!entry) return no_tensor(name, path(), entries().size());
  return file_.array(entry->type, header_->data_begin + entry->begin);
}

std::optional<Result<HostArray>> SafetensorsFile::consecutive(
    std::span<const std::string> names) const {
  const SafetensorsEntry *first = find(names[0]), *last = first;
  for (const std::string& name : names) {
    const SafetensorsEntry* entry = find(name);
    if (!entry || entry->type != first->type) return std::nullopt;
    if (entry != first && entry->begin != last->end) return std::nullopt;
    last = entry;
  }
  Dimensions sizes{static_cast<std::int64_t>(names.size())};
  for (std::int64_t size : first->type.shape) sizes.push_back(size);
  return file_.array({first->type.dtype, Shape(std::move(sizes))},
                     header_->data_begin + first->begin);
}

Result<Tensor> SafetensorsFile::tensor(std::string_view name, SourceLocation where) const {
  Result<HostArray> found = array(name);
  if (!found) return found.error().at(where);
  return from_host(*std::move(found), where);
}

Result<Weights> Weights::open(const std::string& path) {
  Weights weights;
  if (is_folder(path))
    return open(path + (exists(path + kIndexOfFolder) ? kIndexOfFolder : kFileOfFolder));
  if (!path.ends_with(kIndexEnding)) {
    Result<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file) return file.error();
    for (const SafetensorsEntry& entry : file->entries()) weights.files_.emplace(entry.name, *file);
    return weights;
  }
  Result<std::map<std::string, std::string>> index = read_index(path);
  if (!index) return index.error();
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::map<std::string, SafetensorsFile> files;
  for (const auto& [name, file_name] : *index) {
    auto found = files.find(file_name);
    if (found == files.end()) {
      Result<SafetensorsFile> file = SafetensorsFile::open(folder + file_name);
      if (!file) return file.error().with_note(cat("the file is listed in ", path));
      found = files.emplace(file_name, *std::move(file)).first;
    }
    if (!found->second.find(name))
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", path, "] tensor \"", name, "\" is not in ", file_name));
    weights.files_.emplace(name, found->second);
  }
  return weights;
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> out;
  for (const auto& each : files_) out.push_back(each.first);
  return out;
}

Result<TensorType> Weights::type(std::string_view name) const {
  auto found = files_.find(name);
  if (found == files_.end()) return no_tensor(name, "these weights", files_.size());
  return found->second.find(name)->type;
}

Result<Tensor> Weights::tensor(std::string_view name, SourceLocation where) const {
  auto found = files_.find(name);
  if (found == files_.end()) return no_tensor(name, "these weights", files_.size()).at(where);
  return found->second.tensor(name, where);
}

Result<Tensor> Weights::stacked(std::span<const std::string> names, const Shape& sizes,
                                SourceLocation where) const {
  MESHARD_ASSIGN_OR_RETURN(TensorType type, this->type(names[0]));
  Dimensions all = sizes.sizes();
  for (std::int64_t size : type.shape) all.push_back(size);
  TensorType whole{type.dtype, Shape(std::move(all))};
  const SafetensorsFile& file = files_.find(names[0])->second;
  if (std::optional<Result<HostArray>> view = file.consecutive(names)) {
    if (!view->ok()) return view->error().at(where);
    return from_host((*std::move(*view)).reshaped(whole.shape), where);
  }
  HostArray array = HostArray::uninitialized(whole);
  std::byte* next = array.mutable_bytes();
  for (const std::string& name : names) {
    auto found = files_.find(name);
    if (found == files_.end()) return no_tensor(name, "these weights", files_.size()).at(where);
    Result<HostArray> one = found->second.array(name);
    if (!one) return one.error().at(where);
    if (one->type() != type)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[io] cannot stack \"", names[0], "\", ", type, ", and \"", name, "\", ",
                       one->type()),
                   where);
    next = std::copy_n(one->bytes(), one->size_in_bytes(), next);
  }
  return from_host(std::move(array), where);
}

Result<std::map<std::string, Tensor>> Weights::load(const std::vector<NamedSharding>& shardings,
                                                    SourceLocation where) const {
  std::map<std::string, Tensor> out;
  for (const auto& [name, file] : files_) {
    Result<Tensor> loaded = file.tensor(name, where);
    if (!loaded) return loaded.error();
    Tensor tensor = *std::move(loaded);
    for (const NamedSharding& sharding : shardings) {
      if (!matches_name(sharding.names, name)) continue;
      try {
        tensor = mark_sharding(In(tensor, where), sharding.mesh, sharding.spec);
      } catch (const Error& error) {
        return error.with_note(cat("while placing \"", name, "\" of ", file.path()));
      }
      break;
    }
    out.emplace(name, std::move(tensor));
  }
  return out;
}

Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<NamedSharding>& shardings,
                                           SourceLocation where) {
  Result<Weights> weights = Weights::open(path);
  if (!weights) return weights.error().at(where);
  return weights->load(shardings, where);
}

Result<void> internal::save_in_order(const std::string& path, std::span<const NamedTensors> tensors,
                                     const std::map<std::string, std::string>& metadata,
                                     SourceLocation where) {
  try {
    return save_or_throw(path, tensors, metadata, where);
  } catch (const Error& error) {
    return error.at(where);
  }
}

Result<void> save(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata, SourceLocation where) {
  std::vector<internal::NamedTensors> named;
  for (const auto& [name, tensor] : tensors) named.push_back({{name}, tensor, 0});
  return internal::save_in_order(path, named, metadata, where);
}

}  // namespace meshard::io
