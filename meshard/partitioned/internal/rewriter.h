// Replaces the collectives of a module by calls, and chains the calls.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/partitioned/internal/edited_module.h"
#include "meshard/partitioned/internal/read_collective.h"

namespace meshard::internal {

class Rewriter {
 public:
  Rewriter(EditedModule& module, const Placement& placement)
      : module_(module), placement_(placement), ids_(module) {}

  Result<void> run();
  bool communicates() const { return communicates_.at(module_.entry); }
  int calls() const { return calls_; }
  bool uses_replicas() const { return uses_replicas_; }

 private:
  // How the chain enters a computation: as one more parameter, or as one more part of its only
  // parameter. It leaves as one more part of the root, except in a loop's condition.
  enum class Entry { kParameter, kState, kCondition };
  // One computation that is being rewritten.
  struct Scope;
  // A started collective, until its done instruction.
  struct Started {
    std::int64_t call;
    std::size_t first;
  };
  struct Member {
    const EditedInstruction* instruction;
    const FoundCollective* found;
    std::string result_shape;
  };

  Result<void> find_collectives();
  void replace_positions(EditedComputation& computation);
  static std::string extended(std::string_view program_shape, Entry entry);
  void edit_program_shape();
  Result<std::int64_t> threaded(std::int64_t computation, Entry entry);
  EditedComputation clone(const EditedComputation& computation);
  Result<void> thread(EditedComputation& computation, Entry entry);
  Result<void> check_parameters(const Scope& scope) const;
  void enter(Scope& scope);
  void leave(Scope& scope);
  Result<void> write(Scope& scope, const std::vector<std::size_t>& indices);
  Result<void> write_one(Scope& scope, EditedInstruction instruction);
  Result<void> write_while(Scope& scope, EditedInstruction instruction);
  Result<void> write_conditional(Scope& scope, EditedInstruction instruction);
  Result<void> write_call(Scope& scope, EditedInstruction instruction);
  Result<void> write_start(Scope& scope, const EditedInstruction& instruction,
                           const FoundCollective& found);
  Result<Started> write_collective(Scope& scope, const std::vector<Member>& members);
  void write_chained(Scope& scope, EditedInstruction instruction);
  Result<const FoundCollective*> wrapped_collective(const EditedInstruction& start) const;
  const FoundCollective* found(const EditedInstruction& instruction) const;
  bool calls_communicating(const EditedInstruction& instruction) const;
  Error error(const EditedInstruction& instruction, ErrorCode code, std::string_view what) const;

  EditedModule& module_;
  const Placement& placement_;
  IdSource ids_;
  int calls_ = 0;
  bool uses_replicas_ = false;
  int depth_ = 0;
  std::unordered_map<const HloInstruction*, FoundCollective> found_;
  std::unordered_map<std::int64_t, bool> communicates_;          // by computation
  std::unordered_map<std::int64_t, std::size_t> index_;          // of a computation, by id
  std::unordered_map<std::int64_t, int> callers_;                // by computation
  std::map<std::pair<std::int64_t, Entry>, std::int64_t> done_;  // rewritten computations
  // Computations that are used in several ways are rewritten as copies, which follow them.
  std::vector<std::pair<std::size_t, EditedComputation>> copies_;
};

}  // namespace meshard::internal
