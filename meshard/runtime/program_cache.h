// The in-memory cache of compiled programs.
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

/// Cache of compiled programs, keyed by what they compute. The lookup has two steps. The graph's
/// fingerprint, which includes the mesh with its device type and ids, finds a loaded program
/// without lowering. Otherwise the graph is lowered, and if the same text was compiled for other
/// devices of the same platform, that executable is loaded for these devices. Thread-safe: threads
/// compile concurrently, and a thread that requests a program that another thread is compiling
/// waits for it.
///
/// Holds MESHARD_MOST_PROGRAMS programs (default 1,000) and evicts the least recently used one; its
/// holders may continue to use it. A restart of the runtime clears the cache.
class ProgramCache {
 public:
  ProgramCache();
  /// @pre most > 0
  explicit ProgramCache(std::size_t most) : most_(most) {}

  /// The program, for the client of its mesh's platform, or for the default client without a mesh.
  /// @error the errors of lowering, runtime_client and the compiler.
  std::shared_ptr<const LoadedProgram> get(const Program& program, SourceLocation where);
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<const LoadedProgram> program;  // null: a thread is making it
    std::list<Fingerprint>::iterator place;        // in the table's order of use
  };
  struct Table {
    std::unordered_map<Fingerprint, Entry> entries;
    std::list<Fingerprint> latest_first;
  };
  using Programs = std::vector<std::shared_ptr<const LoadedProgram>>;
  class Making;
  std::shared_ptr<const LoadedProgram> make(const Program& program, SourceLocation where);
  // Removes programs and returns them, for the caller to release without the lock.
  Programs shrink(Table& table) const;
  Programs forget_replaced();

  std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::uint64_t num_made_ = 0;  // or abandoned
  std::uint32_t generation_ = 0;
  Table by_graph_, by_text_;
};

}  // namespace meshard
