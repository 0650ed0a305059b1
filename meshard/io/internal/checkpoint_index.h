// The index of a model or checkpoint in several files.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "meshard/array/shape.h"
#include "meshard/array/slice.h"
#include "meshard/base/result.h"

namespace meshard::io::internal {

// The files of one checkpoint: their names, and which of them are left over.

/// A value: where the checkpoint at a path is. It has one of two forms: one file, or an index
/// (`run.safetensors.index.json`) that names the files of several writers
/// (`run-ID-00001-of-00004.safetensors`, beside it). If both exist, the index counts: a save that
/// replaces an index by one file removes the index last, and one that replaces one file by an index
/// writes the index first.
class CheckpointFiles {
 public:
  /// @param path one file, or the index, or a folder (one that exists, or with a `/` at the end),
  /// in which the name is `model.safetensors`
  explicit CheckpointFiles(std::string_view path);

  const std::string& one_file() const { return one_file_; }
  std::string index() const { return one_file_ + ".index.json"; }
  /// Whether the path names a folder.
  bool names_folder() const { return names_folder_; }
  /// The folder of the files, with a `/` at the end; empty: the current one.
  const std::string& folder() const { return folder_; }
  /// Whether there is an index that counts. An index beside a file that was named explicitly does
  /// not if another library wrote it.
  bool index_counts() const;
  /// Identifies the checkpoint in this process, however its path is written.
  std::string key() const;

  /// The name, without the folder, of the file of writer `number` (from 0) of `count`.
  /// @param id 16 hexadecimal digits, different for each save
  std::string piece_file(std::string_view id, int number, int count) const;
  /// Whether a file in the folder has a name like those of piece_file(), or is a part of one that
  /// was not completed.
  bool is_piece_file(std::string_view name) const;

  /// Removes files that nothing needs any more: those of killed processes, and those of writers
  /// that the index on the disk does not name and that no process is writing. Where files cannot be
  /// locked, this cannot be known, and only those in `replaced` are removed. Errors are ignored:
  /// what remains is removed by a later save.
  void remove_unused(const std::set<std::string>& replaced) const;

 private:
  std::string folder_, one_file_, stem_;
  bool names_folder_ = false;
};

/// 16 hexadecimal digits that no other save has.
std::string new_save_id();

/// The name of a tensor's part in the file of its writer: `w[0:4, 0:4]`.
std::string piece_name(std::string_view tensor, std::string_view box);

/// A value: the contents of `NAME.index.json`. Tensors that are whole in one file are in
/// `weight_map`, as in the indexes of other libraries. Tensors that are split among files are in an
/// object of our own:
///
///     {"metadata": {"total_size": 96},
///      "weight_map": {"step": "run-4f…-00001-of-00002.safetensors"},
///      "meshard": {"version": 1,
///                  "files": {"run-4f…-00001-of-00002.safetensors": 248, …},
///                  "split": {"w": {"dtype": "F32", "shape": [4, 4],
///                                  "parts": {"[0:2, 0:4]": "run-4f…-00001-of-00002.safetensors",
///                                            "[2:4, 0:4]":
///                                            "run-4f…-00002-of-00002.safetensors"}}}}}
///
/// A part is a tensor of its file, named piece_name(name, box).
struct CheckpointIndex {
  /// A tensor in parts.
  struct Split {
    TensorType type;
    /// The box and the file of each part, by the box's text, which names the part in its file.
    struct Part {
      Box box;
      std::string file;
      friend bool operator==(const Part&, const Part&) = default;
    };
    std::map<std::string, Part> parts;
    friend bool operator==(const Split&, const Split&) = default;
  };

  /// Its strings, and its numbers as text, without total_size.
  std::map<std::string, std::string> metadata;
  /// The size in bytes of all tensors; 0 if the index does not say.
  std::uint64_t total_size = 0;
  /// The file of each whole tensor.
  std::map<std::string, std::string> whole;
  std::map<std::string, Split> split;
  /// The size in bytes of each file; empty unless meshard wrote the index.
  std::map<std::string, std::uint64_t> files;
  bool is_ours = false;
  friend bool operator==(const CheckpointIndex&, const CheckpointIndex&) = default;

  /// Reads an index file. File names are checked: an index can refer only to files beside it.
  /// @error as parse(), and of reading the file
  static Result<CheckpointIndex> read(const std::string& path);
  /// @param place the prefix of error messages: the path
  /// @error invalid argument for anything that is not an index, including a split tensor whose
  /// parts overlap or leave gaps; unimplemented for a newer version
  static Result<CheckpointIndex> parse(std::string_view text, std::string_view place);
  /// Like parse(), for the index of one of several writers: parts may be missing.
  static Result<CheckpointIndex> parse_of_writer(std::string_view text, std::string_view place);
  /// The text of an index of ours.
  std::string to_json() const;

  /// Adds the tensors and parts of another writer.
  /// @error invalid argument if both have the same tensor or part, or a split tensor differs in
  /// type
  Result<void> merge(const CheckpointIndex& other);
  /// Checks that the parts of each split tensor cover it exactly once.
  /// @error invalid argument, naming the tensor and two parts that overlap, or the number of
  /// elements that are missing
  Result<void> check_parts(std::string_view place) const;
};

}  // namespace meshard::io::internal
