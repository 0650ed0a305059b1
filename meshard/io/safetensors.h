// Named tensors in safetensors files: read on use and written shard by shard.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"
#include "meshard/io/mapped_file.h"
#include "meshard/io/safetensors_header.h"
#include "meshard/sharding/sharding.h"

namespace meshard::io {

/// A handle on one safetensors file, whose header has been validated. Opening reads only the
/// header. A tensor's bytes are read on use, and only those that are used, such as the shard of a
/// device.
class SafetensorsFile {
 public:
  /// Opens a file and reads its header.
  /// @error as MappedFile::open and read_safetensors_header
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// The tensors, in the order of their bytes in the file.
  const std::vector<SafetensorsEntry>& entries() const { return header_->tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_->metadata; }
  /// The tensor with this name; nullptr if there is none.
  const SafetensorsEntry* find(std::string_view name) const;

  /// The tensor's elements, in the memory of the mapped file (see MappedFile::array).
  /// @error not found
  Result<HostArray> array(std::string_view name) const;
  /// The tensors with these names as one array, if they have one type and their bytes follow each
  /// other; otherwise empty. The first dimension of the array has their number.
  std::optional<Result<HostArray>> consecutive(std::span<const std::string> names) const;
  /// The tensor on the host; mark_sharding(tensor, ...) sends each device its shard.
  Result<Tensor> tensor(std::string_view name,
                        SourceLocation where = SourceLocation::current()) const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::shared_ptr<const SafetensorsHeader> header_;
  std::shared_ptr<const std::map<std::string_view, std::size_t>> by_name_;
};

/// The sharding of all tensors whose names match a pattern.
struct NamedSharding {
  /// A pattern for names, in which `*` matches any text: `blocks.*.wq`.
  std::string names;
  Mesh mesh;
  PartitionSpec spec;
};

/// A handle on a model's weights: one safetensors file, or several files with an index.
class Weights {
 public:
  /// Opens the weights of a model.
  /// @param path a safetensors file; an index (`*.index.json`, whose `weight_map` names files
  /// beside it); or a folder with `model.safetensors.index.json` or `model.safetensors`
  /// @error as SafetensorsFile::open; invalid argument for an index that names a file elsewhere, or
  /// a tensor that its file lacks.
  static Result<Weights> open(const std::string& path);

  /// The names of all tensors, in alphabetical order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return files_.find(name) != files_.end(); }
  /// The dtype and shape of a tensor.
  /// @error not found
  Result<TensorType> type(std::string_view name) const;
  /// The tensor on the host; as SafetensorsFile::tensor.
  Result<Tensor> tensor(std::string_view name,
                        SourceLocation where = SourceLocation::current()) const;
  /// Tensors of one type as one tensor on the host, stacked along new first dimensions of these
  /// sizes; `names` are in row-major order. Not copied if they follow each other in one file, as
  /// io::save writes the layers of an nn::Layers.
  /// @error not found; invalid argument: tensors of different types
  /// @pre as many names as `sizes` has elements, at least one
  Result<Tensor> stacked(std::span<const std::string> names, const Shape& sizes,
                         SourceLocation where = SourceLocation::current()) const;
  /// Loads all tensors onto the devices that `shardings` specifies. The first entry whose pattern
  /// matches a tensor's name applies; tensors without a match stay on the host.
  /// @error errors of placing a tensor, such as a spec with more dimensions than the tensor
  Result<std::map<std::string, Tensor>> load(
      const std::vector<NamedSharding>& shardings = {},
      SourceLocation where = SourceLocation::current()) const;

 private:
  std::map<std::string, SafetensorsFile, std::less<>> files_;  // by tensor name
};

/// Opens the weights at `path` and loads them: Weights::open(path), then load(shardings).
Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<NamedSharding>& shardings = {},
                                           SourceLocation where = SourceLocation::current());

/// Writes tensors to a safetensors file, atomically replacing the file at `path`. The file is
/// renamed after its bytes are on the disk. Recorded values are computed first, in one program. A
/// sharded tensor is never gathered: each distinct shard is written from its device to its
/// positions in the file.
/// @error as write_safetensors_header and NewFile; errors of the computation; failed precondition
/// for a donated tensor.
Result<void> save(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  SourceLocation where = SourceLocation::current());

namespace internal {

/// A tensor to save, under one name; or one that stacks equal tensors along its first dimensions,
/// to save under their names (in row-major order), one after the other in the file.
struct NamedTensors {
  std::vector<std::string> names;
  Tensor tensor;
  /// The number of dimensions along which it stacks the named tensors.
  std::size_t stacked = 0;
};

/// As io::save; tensors with elements of one size are written in the order of `tensors`.
Result<void> save_in_order(const std::string& path, std::span<const NamedTensors> tensors,
                           const std::map<std::string, std::string>& metadata,
                           SourceLocation where);

}  // namespace internal
}  // namespace meshard::io
