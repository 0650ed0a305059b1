// Saves nested structures of tensors to a file and restores them onto the same or another mesh.
//
// A checkpoint is a safetensors file, or one for each process of a run and an index. The name of a
// tensor is its path: the field names of MESHARD_FIELDS, indices and keys, separated by dots, as in
// `params.blocks.2.wq`. Numbers are stored as tensors of rank 0; Static members are not stored. The
// layers of an nn::Layers are stored like the layers of a vector, `params.blocks.2.wq`; either can
// be
// restored from the other's checkpoint.
//
//     io::save("step.safetensors", state).value();
//     state = io::restore("step.safetensors", state).value();
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/graph/structure.h"
#include "meshard/io/save.h"
#include "meshard/io/weights.h"

namespace meshard::io {

/// Converts a path from structure::for_each to a name in a checkpoint. `.blocks[2].w` becomes
/// `blocks.2.w`; the structure itself is named `value`.
std::string checkpoint_name(std::string_view path);

/// The names of the tensors that a tensor at this path stacks along dimensions of these sizes, in
/// row-major order: `blocks.0.w`, `blocks.1.w` for `.blocks[:].w` and {2}.
/// @pre as many sizes as structure::stacked_dimensions(path)
std::vector<std::string> checkpoint_names(std::string_view path,
                                          std::span<const std::int64_t> sizes);

namespace internal {

/// Collects the tensors to save. If two members have the same name, saving fails.
class CheckpointWriter {
 public:
  void add(const Tensor& tensor, const std::string& path);
  template <class Number>
  void add_number(Number number, const std::string& path) {
    add_array(HostArray::scalar(number), path);
  }
  Result<void> save(const std::string& path, const SaveOptions& options, SourceLocation where);
  Saving save_async(const std::string& path, const SaveOptions& options, SourceLocation where);
  /// In the order of the file. @error invalid argument if two members have the same name
  Result<std::vector<NamedTensors>> in_order(const std::string& path) const;

 private:
  void add_array(HostArray array, const std::string& path);
  std::map<std::string, NamedTensors> tensors_;  // by path: the order in the file
};

/// Compares the members of a structure with a checkpoint, and restores them one by one; keeps the
/// first error.
class CheckpointReader {
 public:
  CheckpointReader(Weights weights, SourceLocation where)
      : weights_(std::move(weights)), where_(where) {}
  /// Before all calls of restore(): for each member.
  void expect(const Tensor& like, const std::string& path);
  /// After them: all differences at once.
  void check(const LoadOptions& options);
  void restore(Tensor& like, const std::string& path);
  template <class Number>
  void expect_number(Number like, const std::string& path) {
    expect_array(HostArray::scalar(like), path);
  }
  template <class Number>
  void restore_number(Number& like, const std::string& path) {
    HostArray array = HostArray::scalar(like);
    restore_array(array, path);
    if (!error_) like = array.item<Number>();
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  void expect_array(HostArray like, const std::string& path);
  void restore_array(HostArray& like, const std::string& path);
  Result<Tensor> find(const Tensor& like, const std::string& path);
  Weights weights_;
  std::set<std::string> wanted_;  // the names of all members
  std::string unlike_;            // members of another type
  std::optional<Error> error_;
  SourceLocation where_;
};

}  // namespace internal

namespace internal {

/// The tensors and numbers of a structure.
template <class T>
CheckpointWriter writer_of(const T& structure) {
  CheckpointWriter writer;
  structure::for_each(structure, [&](const auto& leaf, const std::string& at) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (structure::Leaf<Leaf>)
      writer.add(leaf, at);
    else if constexpr (structure::Number<Leaf>)
      writer.add_number(leaf, at);
  });
  return writer;
}

/// A structure like `like` with the values of a checkpoint.
template <class T>
Result<T> restored(Weights weights, T like, const LoadOptions& options, SourceLocation where) {
  CheckpointReader reader(std::move(weights), where);
  structure::for_each(like, [&](auto& leaf, const std::string& at) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (structure::Leaf<Leaf>)
      reader.expect(leaf, at);
    else if constexpr (structure::Number<Leaf>)
      reader.expect_number(leaf, at);
  });
  reader.check(options);
  structure::for_each(like, [&](auto& leaf, const std::string& at) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if (reader.error()) return;
    if constexpr (structure::Leaf<Leaf>)
      reader.restore(leaf, at);
    else if constexpr (structure::Number<Leaf>)
      reader.restore_number(leaf, at);
  });
  if (reader.error()) return *reader.error();
  return like;
}

}  // namespace internal

/// Writes the tensors and numbers of `structure`, atomically replacing the checkpoint at `path`:
/// one safetensors file, or one for each process of a run; see io::save for named tensors.
/// @error as io::save for named tensors
template <class T>
requires(!std::is_same_v<T, std::map<std::string, Tensor>>) Result<void> save(
    const std::string& path, const T& structure, const SaveOptions& options = {},
    SourceLocation where = SourceLocation::current()) {
  return internal::writer_of(structure).save(path, options, where);
}

/// Like save(), while the program goes on; see io::save_async for named tensors.
template <class T>
requires(!std::is_same_v<T, std::map<std::string, Tensor>>) Saving
    save_async(const std::string& path, const T& structure, const SaveOptions& options = {},
               SourceLocation where = SourceLocation::current()) {
  return internal::writer_of(structure).save_async(path, options, where);
}

/// Returns a structure like `like` with the values from a checkpoint. Each tensor of `like` gives
/// the required type, and by its sharding the placement; it may be an old value or an
/// abstract_tensor(). An undefined tensor takes the type in the file and stays on the host; so does
/// a tensor without a sharding. Each device's bytes are read once, and only these. With `strict =
/// false`, other tensors in the file are ignored. In a run of several processes, each reads what
/// its own devices hold; the checkpoint may come from any number of processes.
/// @error as Weights::open; with the file's path, all at once: members that the file lacks, with
/// the nearest names, tensors in the file for which there is no member (not found), and members of
/// another type (invalid argument, if that is all)
template <class T>
Result<T> restore(const std::string& path, T like, LoadOptions options = {},
                  SourceLocation where = SourceLocation::current()) {
  Result<Weights> weights = Weights::open(path);
  if (!weights) return weights.error().at(where);
  return internal::restored(*std::move(weights), std::move(like), options, where);
}

}  // namespace meshard::io
