// The tensors of a model or checkpoint, in one or several files.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/io/safetensors.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard::io {

/// The sharding of all tensors whose names match a pattern.
struct NamedSharding {
  /// A pattern for names, in which `*` matches any text and no other character is special:
  /// `blocks.*.wq`.
  std::string names;
  Mesh mesh;
  PartitionSpec spec;
};

struct LoadRule;  // load_rule.h
namespace internal {
class Receiving;  // publish.h
}

/// Options of load() and restore().
struct LoadOptions {
  /// Whether patterns that match no tensor, and tensors of a checkpoint that a restored structure
  /// has no member for, are errors instead of being ignored.
  bool strict = true;
};

/// A handle on a model's weights: one safetensors file, or several files with an index.
class Weights {
 public:
  /// Opens the weights of a model, or a checkpoint. Waits for saves to the same path that this
  /// process has not completed. If a checkpoint is replaced meanwhile, either the old or the new
  /// one is opened.
  /// @param path as given to io::save; or a safetensors file; an index (`*.index.json`, whose
  /// `weight_map` names files beside it); or a folder with `model.safetensors.index.json` or
  /// `model.safetensors`
  /// @error as SafetensorsFile::open; invalid argument for an index that names a file elsewhere, or
  /// a tensor that its file lacks, or parts that do not cover a tensor exactly once; data loss for
  /// a file of another size than the index says
  static Result<Weights> open(const std::string& path);

  /// As it was opened.
  const std::string& path() const { return path_; }
  /// For messages: `the checkpoint`.
  const std::string& what() const { return what_; }
  /// The names of all tensors, in alphabetical order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  /// The dtype and shape of a tensor.
  /// @error not found
  Result<TensorType> type(std::string_view name) const;
  /// Where the tensor is in the files.
  /// @error not found
  Result<StoredTensor> stored(std::string_view name) const;
  /// The metadata of the file or the index.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// The tensor on the host; as SafetensorsFile::tensor. If it is in parts in several files, all of
  /// it is read: placed() reads only what this process needs.
  Result<Tensor> tensor(std::string_view name,
                        SourceLocation where = SourceLocation::current()) const;
  /// The tensor on the devices of a mesh. Each process reads only the parts of its own devices.
  /// @error not found; errors of placing the tensor
  Result<Tensor> placed(std::string_view name, const Sharding& sharding,
                        SourceLocation where = SourceLocation::current()) const;
  /// Tensors of one type as one tensor on the host, stacked along new first dimensions of these
  /// sizes; `names` are in row-major order. Not copied if they follow each other in one file, as
  /// io::save writes the layers of an nn::Layers.
  /// @error not found; invalid argument: tensors of different types
  /// @pre as many names as `sizes` has elements, at least one
  Result<Tensor> stacked(std::span<const std::string> names, const Shape& sizes,
                         SourceLocation where = SourceLocation::current()) const;
  /// The same on the devices of a mesh, as placed().
  Result<Tensor> placed_stacked(std::span<const std::string> names, const Shape& sizes,
                                const Sharding& sharding,
                                SourceLocation where = SourceLocation::current()) const;
  /// Loads all tensors onto the devices that `shardings` specifies. The first entry whose pattern
  /// matches a tensor's name applies; tensors without a match stay on the host.
  /// @error errors of placing a tensor, such as a spec with more dimensions than the tensor; not
  /// found, with the nearest names: a pattern that matches no name
  Result<std::map<std::string, Tensor>> load(
      const std::vector<NamedSharding>& shardings = {}, LoadOptions options = {},
      SourceLocation where = SourceLocation::current()) const;

 private:
  static Result<Weights> open_file(const std::string& path);
  static Result<Weights> open_index(const std::string& path);
  Result<Tensor> make(std::span<const std::string> names, const Shape& sizes,
                      const Sharding* sharding, SourceLocation where) const;
  Result<Tensor> load_one(const std::string& name, const StoredTensor& stored,
                          const std::vector<NamedSharding>& shardings, SourceLocation where) const;

  friend Result<Weights> mapped(const Weights& weights, const std::vector<LoadRule>& rules,
                                LoadOptions options, SourceLocation where);

  friend class internal::Receiving;

  std::string path_, what_ = "the checkpoint";
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Whether Weights::open() and restore() would find weights at `path`, so that a program can
/// resume. They need not be intact. Waits for saves of this process to the path.
/// @error the system's error, if it cannot be known
Result<bool> has_checkpoint(const std::string& path);

/// Opens the weights at `path` and loads them: Weights::open(path), then load(shardings, options).
Result<std::map<std::string, Tensor>> load(const std::string& path,
                                           const std::vector<NamedSharding>& shardings = {},
                                           LoadOptions options = {},
                                           SourceLocation where = SourceLocation::current());

}  // namespace meshard::io
