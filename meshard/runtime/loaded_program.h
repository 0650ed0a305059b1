// A program on its devices: compiled, loaded, and called.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/read_back.h"

namespace meshard {

/// An immutable, loaded program. Shared; may be called from several threads.
class LoadedProgram {
 public:
  LoadedProgram(pjrt::Client client, LoweredModule lowered, pjrt::LoadedExecutable executable,
                ChosenShardings chosen);

  /// Runs it. `arguments`: parameters and then captured values, each a stored tensor; host values
  /// are placed as the program wants them, once.
  /// @post results[i] is a stored tensor
  /// @error an argument that is gone or does not fit, called by its name in `names`, as far as
  /// these go; before the launch nothing is consumed.
  void run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
           SourceLocation where, std::span<const std::string> names = {}) const {
    (void)run(arguments, results, where, names, /*track=*/false);
  }

  /// The same, and the launch that computes the results.
  pjrt::Launch run_tracked(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                           SourceLocation where, std::span<const std::string> names = {}) const {
    return run(arguments, results, where, names, /*track=*/true);
  }
  /// False after the runtime was restarted: its client was replaced.
  bool is_current() const {
    return generation_ == internal::runtime_generation.load(std::memory_order_relaxed);
  }

  const LoweredModule& lowered() const { return lowered_; }
  const pjrt::LoadedExecutable& executable() const { return executable_; }
  const ChosenShardings& shardings() const { return chosen_; }
  const pjrt::Client& client() const { return client_; }

 private:
  // Argument i's buffer for logical device d is number order[d] of its array; empty: the same
  // number.
  struct ArgumentPlan {
    std::vector<std::uint32_t> order;
  };
  pjrt::Launch run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                   SourceLocation where, std::span<const std::string> names, bool track) const;
  Result<pjrt::Launch> launch(std::span<const pjrt::Buffer* const> arguments,
                              std::span<pjrt::Buffer> results, SourceLocation where,
                              bool track) const;
  // Results of a launch, device after device.
  void take_results(std::span<pjrt::Buffer> made, std::span<Tensor> results,
                    SourceLocation where) const;
  StoragePtr on_devices(std::size_t argument, const Tensor& tensor, SourceLocation where) const;
  // Equal shardings become copies of one, which compare by pointer when a result comes back as
  // argument.
  void share_equal_shardings();
  [[noreturn]] static void fail(const Error& error, std::span<const Tensor* const> arguments,
                                std::span<const DeviceArray* const> arrays,
                                std::span<const std::string> names, SourceLocation where);

  pjrt::Client client_;
  LoweredModule lowered_;
  pjrt::LoadedExecutable executable_;
  ChosenShardings chosen_;
  std::vector<ArgumentPlan> plans_;
  std::vector<std::uint32_t> donated_;
  bool device_by_device_ = false;
  std::uint32_t generation_ = internal::runtime_generation.load(std::memory_order_relaxed);
};

/// Compiles `lowered` for the devices of its mesh. `where` is the user's line, for traces.
Result<std::shared_ptr<const LoadedProgram>> load_program(const pjrt::Client& client,
                                                          LoweredModule lowered,
                                                          SourceLocation where = {});

}  // namespace meshard
