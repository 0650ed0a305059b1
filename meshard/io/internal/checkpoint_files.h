// The files of one checkpoint: their names, and which of them are left over.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::io::internal {

/// A value: where the checkpoint at a path is. It has one of two forms: one file, or an index
/// (`run.safetensors.index.json`) that names the files of several writers
/// (`run-ID-00001-of-00004.safetensors`, beside it). If both exist, the index counts: whoever
/// replaces an index by one file removes the index last, and whoever replaces one file by an index
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

}  // namespace meshard::io::internal
