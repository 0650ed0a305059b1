// Nested structures of tensors in a file, and back, onto the same mesh or another one.
//
// A checkpoint is a safetensors file. A tensor's name is its path: the fields that MESHARD_FIELDS
// names, indices and keys with dots between them, `params.blocks.2.wq`. Numbers are stored too, as
// tensors of rank 0; Static members are not.
//
//     io::save("step.safetensors", state).value();
//     state = io::restore("step.safetensors", state).value();
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "meshard/base/result.h"
#include "meshard/graph/structure.h"
#include "meshard/io/safetensors.h"

namespace meshard::io {

/// The name in a checkpoint of what structure::for_each calls `path`: `.blocks[2].w` is
/// `blocks.2.w`; the structure itself is `value`.
std::string checkpoint_name(std::string_view path);

namespace internal {

/// Collects what is to be saved; a name that two members have is an error.
class CheckpointWriter {
 public:
  void add(const Tensor& tensor, const std::string& path);
  template <class Number>
  void add_number(Number number, const std::string& path) {
    add_array(HostArray::scalar(number), path);
  }
  Result<void> save(const std::string& path, SourceLocation where);

 private:
  void add_array(HostArray array, const std::string& path);
  std::map<std::string, Tensor> tensors_;
  std::string twice_;
};

/// Gives members their values; the first error stays.
class CheckpointReader {
 public:
  CheckpointReader(const std::string& path, SourceLocation where);
  void restore(Tensor& like, const std::string& path);
  template <class Number>
  void restore_number(Number& like, const std::string& path) {
    HostArray array = HostArray::scalar(like);
    restore_array(array, path);
    if (!error_) like = array.item<Number>();
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  void restore_array(HostArray& like, const std::string& path);
  std::optional<Weights> weights_;
  std::optional<Error> error_;
  SourceLocation where_;
};

}  // namespace internal

/// Writes the tensors and numbers of `structure` to a safetensors file, replacing the one at `path`
/// in one step; see io::save of named tensors.
/// @error as there
template <class T>
requires(!std::is_same_v<T, std::map<std::string, Tensor>>) Result<void> save(
    const std::string& path, const T& structure, SourceLocation where = SourceLocation::current()) {
  internal::CheckpointWriter writer;
  structure::for_each(structure, [&](const auto& leaf, const std::string& at) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (structure::Leaf<Leaf>)
      writer.add(leaf, at);
    else if constexpr (structure::Number<Leaf>)
      writer.add_number(leaf, at);
  });
  return writer.save(path, where);
}

/// A structure like `like` with the values of a checkpoint. Each tensor of `like` says of which
/// type the value has to be, and by its sharding where it goes: it may be an old value, or an
/// abstract_tensor(). One without a value takes what is in the file, and stays on the host, as does
/// one without a sharding. Bytes are read once, each device's own. What the file has besides is
/// left alone.
/// @error as Weights::open; not found: a member that the file lacks; invalid argument: one of
/// another type, naming both.
template <class T>
Result<T> restore(const std::string& path, T like,
                  SourceLocation where = SourceLocation::current()) {
  internal::CheckpointReader reader(path, where);
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

}  // namespace meshard::io
