// A checkpoint that the processes of a run write together.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <variant>

#include "meshard/base/result.h"
#include "meshard/io/internal/checkpoint_index.h"
#include "meshard/io/internal/save_items.h"

namespace meshard::io::internal {

/// One process's part in a save of all processes.
struct JointSave {
  CheckpointFiles files;
  std::map<std::string, std::string> metadata;
  /// The number of this save among those of this process: all processes do the same saves.
  int number = 0;
  /// The entries that this process saves, or why it cannot save: it takes part in either case, so
  /// that the others receive the error.
  std::variant<SaveItems, Error> items;
  SourceLocation where;
};

/// Writes the file of this process, waits until all have written theirs, and lets process 0 write
/// the index that makes them the checkpoint. The outcome is the same in all processes. Uses only
/// the store and barriers, and no thread of MPI.
///
/// 1. All come to the save, and process 0 has chosen its id: a barrier.
/// 2. Each writes `NAME-ID-0000k-of-0000n.safetensors` and flushes it to the disk; says in the
///    store what it wrote, or why it could not: a barrier.
/// 3. Process 0 checks that all save the same tensors, that their parts cover each of them once,
/// and
///    that it sees all files. It writes the index, removes what the index replaces, and puts the
///    outcome into the store: a barrier.
///
/// A process that is killed before 3 leaves the old checkpoint; the files that were written are
/// removed by a later save.
/// @param all_have_come is called after 1
/// @error the first error of any process, naming it; deadline exceeded if others do not come within
/// MESHARD_PROCESS_WAIT_SECONDS; unavailable if a process is lost
Result<void> save_jointly(JointSave save, const std::function<void()>& all_have_come);

/// The placeholder for this process's file in SaveItems::index, until save_jointly() names it.
inline constexpr const char* kOwnFile = "*";

}  // namespace meshard::io::internal
