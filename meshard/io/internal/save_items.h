// What one process writes into its file: entries, and where their elements come from.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/io/file.h"
#include "meshard/io/internal/checkpoint_index.h"
#include "meshard/io/save.h"
#include "meshard/runtime/shards.h"

namespace meshard::io::internal {

/// A part of a tensor, on a device or in host memory.
class SourcePart {
 public:
  explicit SourcePart(LocalShard shard) : shard_(std::move(shard)), box_(shard_->box()) {}
  SourcePart(HostArray array, Box box) : array_(std::move(array)), box_(std::move(box)) {}

  /// The elements of the tensor.
  const Box& box() const { return box_; }
  /// @error failed precondition if the tensor was donated or deleted
  HostArray read(SourceLocation where) const { return shard_ ? shard_->data(where) : array_; }
  /// Copies the elements from the device now, so that the tensor is not needed any more.
  /// @error as read()
  void take(SourceLocation where) {
    array_ = read(where);
    shard_.reset();
  }

 private:
  std::optional<LocalShard> shard_;
  HostArray array_;
  Box box_;
};

/// Consecutive entries of a file with equal types: the layers of a stacked tensor, or one tensor.
struct SaveItem {
  std::vector<std::string> names;
  /// The type of each entry, and of the array that they are together.
  TensorType each, all;
  /// The elements, by their places in `all`.
  struct Source {
    SourcePart part;
    Box place;
  };
  std::vector<Source> sources;
};

/// What a process saves.
struct SaveItems {
  std::vector<SaveItem> items;
  /// Their entries in the index of several files; `file` names this process's file.
  CheckpointIndex index;
  /// All tensors, with their types and shardings: equal in processes that save the same.
  std::vector<std::string> tensors;

  /// Copies all elements from the devices. @error as SourcePart::read
  void take(SourceLocation where);
};

/// Everything into one file. Computes recorded values, in one program.
/// @error errors of the computation; invalid argument if parts of a value are in other processes
SaveItems items_of_one_file(std::span<const NamedTensors> tensors, SourceLocation where);

/// What process `rank` writes into `file`: of each part of a tensor, one of the processes that hold
/// it is the owner, so that each has about the same number of bytes to write. All processes decide
/// the same. Computes recorded values, which all processes do together.
/// @error errors of the computation
SaveItems items_of_process(std::span<const NamedTensors> tensors, int rank, const std::string& file,
                           SourceLocation where);

/// Writes the items to a new file. It is complete, but not committed.
/// @error as write_safetensors_header, NewFile and SourcePart::read
Result<NewFile> write_items(const std::string& path, const SaveItems& items,
                            const std::map<std::string, std::string>& metadata,
                            SourceLocation where);

}  // namespace meshard::io::internal
