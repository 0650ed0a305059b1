// The programs compiled so far, in memory.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "meshard/base/fingerprint.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

/// Finds a program by what it computes. Two steps: the graph's fingerprint, which names the mesh
/// with its device ids, finds a loaded program without lowering; a new one is lowered, and if the
/// same text was compiled for other devices, that executable is loaded for these. May be asked by
/// several threads: they compile side by side, and who asks for a program that another thread is
/// compiling waits for that one.
class ProgramCache {
 public:
  /// @error what lowering throws, what the compiler answers.
  std::shared_ptr<const LoadedProgram> get(const pjrt::Client& client, const Program& program,
                                           SourceLocation where);

 private:
  // A null program is being made by some thread.
  using Programs = std::unordered_map<Fingerprint, std::shared_ptr<const LoadedProgram>>;
  class Making;
  std::shared_ptr<const LoadedProgram> make(const pjrt::Client& client, const Program& program,
                                            SourceLocation where);

  std::mutex mutex_;
  std::condition_variable made_;
  Programs by_graph_, by_text_;
};

}  // namespace meshard
