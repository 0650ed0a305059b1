// The programs compiled so far, in memory.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

/// Finds a program by what it computes. Two steps: the graph's fingerprint, which names the mesh
/// with its device type and ids, finds a loaded program without lowering; a new one is lowered, and
/// if the same text was compiled for other devices of the same platform, that executable is loaded
/// for these. May be asked by several threads: they compile side by side, and who asks for a
/// program that another thread is compiling waits for that one.
///
/// Holds MESHARD_MOST_PROGRAMS programs (1,000 if that is not set) and forgets the one that was not
/// asked for longest; whoever has it may go on using it. A restart of the runtime forgets all.
class ProgramCache {
 public:
  ProgramCache();
  /// @pre most > 0
  explicit ProgramCache(std::size_t most) : most_(most) {}

  /// The program for the client of its mesh's platform, or of the default one without a mesh.
  /// @error what lowering and runtime_client throw, what the compiler answers.
  std::shared_ptr<const LoadedProgram> get(const Program& program, SourceLocation where);
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<const LoadedProgram> program;  // null: some thread is making it
    std::list<Fingerprint>::iterator place;        // in the table's order of use
  };
  struct Table {
    std::unordered_map<Fingerprint, Entry> entries;
    std::list<Fingerprint> latest_first;
  };
  using Programs = std::vector<std::shared_ptr<const LoadedProgram>>;
  class Making;
  std::shared_ptr<const LoadedProgram> make(const Program& program, SourceLocation where);
  // What has to go, for the caller to release without the lock.
  Programs shrink(Table& table) const;
  Programs forget_replaced();

  std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::uint64_t num_made_ = 0;  // or given up
  std::uint32_t generation_ = 0;
  Table by_graph_, by_text_;
};

}  // namespace meshard
