// The programs compiled so far, in memory.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "meshard/base/fingerprint.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

/// Finds a program by what it computes. Two steps: the graph's fingerprint, which names the mesh
/// with its device ids, finds a loaded program without lowering; a new one is lowered, and if the
/// same text was compiled for other devices, that executable is loaded for these. Locked.
class ProgramCache {
 public:
  /// @error what lowering throws, what the compiler answers.
  std::shared_ptr<const LoadedProgram> get(const pjrt::Client& client, const Program& program,
                                           SourceLocation where);

 private:
  std::mutex mutex_;
  std::unordered_map<Fingerprint, std::shared_ptr<const LoadedProgram>> by_graph_;
  std::unordered_map<Fingerprint, std::shared_ptr<const LoadedProgram>> by_text_;
};

}  // namespace meshard
