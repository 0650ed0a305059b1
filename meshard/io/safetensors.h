// Tensors by name in safetensors files: read where they are used, written shard by shard.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"
#include "meshard/io/mapped_file.h"
#include "meshard/io/safetensors_header.h"
#include "meshard/sharding/sharding.h"

namespace meshard::io {

/// A handle on one safetensors file, whose header has been checked. Opening reads the header alone;
/// a tensor's bytes are read when they are used, and only those that are: a device's shard, say.
class SafetensorsFile {
 public:
  /// @error as MappedFile::open and read_safetensors_header
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// In the order of their bytes in the file.
  const std::vector<SafetensorsEntry>& entries() const { return header_->tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_->metadata; }
  /// nullptr if there is no tensor of this name.
  const SafetensorsEntry* find(std::string_view name) const;

  /// The tensor's elements, in the file's own memory (see MappedFile::array).
  /// @error not found
  Result<HostArray> array(std::string_view name) const;
  /// The same as a tensor on the host: mark_sharding(tensor, ...) sends each device its own part.
  Result<Tensor> tensor(std::string_view name,
                        SourceLocation where = SourceLocation::current()) const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::shared_ptr<const SafetensorsHeader> header_;
  std::shared_ptr<const std::map<std::string_view, std::size_t>> by_name_;
};

/// How tensors with some names lie on a mesh.
struct NamedSharding {
  /// A name, in which `*` stands for any text: `blocks.*.wq`.
  std::string names;
  Mesh mesh;
  PartitionSpec spec;
};

/// A handle on a model's weights: one safetensors file, or several with an index of which tensor is
/// in which.
class Weights {
 public:
  /// @param path a safetensors file; an index (`*.index.json`, whose `weight_map` names files
  /// beside it); or a folder with `model.safetensors.index.json` or `model.safetensors`
  /// @error as SafetensorsFile::open; invalid argument for an index that names a file elsewhere, or
  /// a tensor that its file lacks.
  static Result<Weights> open(const std::string& path);

  /// In alphabetical order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return files_.find(name) != files_.end(); }
  /// @error not found
  Result<TensorType> type(std::string_view name) const;
  /// As SafetensorsFile::tensor.
  Result<Tensor> tensor(std::string_view name,
                        SourceLocation where = SourceLocation::current()) const;
  /// All of them, each on the devices of the first entry of `shardings` that its name matches;
  /// those that none matches stay on the host.
  /// @error what placing meets: a spec of more dimensions than a tensor has, say
  Result<std::map<std::string, Tensor>> load(
      const std::vector<NamedSharding>& shardings = {},
      SourceLocation where = SourceLocation::current()) const;

 private:
  std::map<std::string, SafetensorsFile, std::less<>> files_;  // by tensor name
};

/// Weights::open(path), then load(shardings).
Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<NamedSharding>& shardings = {},
                                           SourceLocation where = SourceLocation::current());

/// Writes a safetensors file of these tensors, replacing the one at `path` in one step, after the
/// bytes are on the disk. What is only recorded is computed first, in one program. A sharded tensor
/// is never gathered: each different shard goes from its device to its places in the file.
/// @error as write_safetensors_header and NewFile; what computing meets; failed precondition for a
/// tensor that was donated.
Result<void> save(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  SourceLocation where = SourceLocation::current());

}  // namespace meshard::io
