// A program that was compiled and loaded on its devices, and can be called.
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
#include "meshard/runtime/nan_check.h"
#include "meshard/runtime/read_back.h"

namespace meshard {

/// An immutable loaded program. Shared; several threads may call it.
class LoadedProgram {
 public:
  LoadedProgram(pjrt::Client client, LoweredModule lowered, pjrt::LoadedExecutable executable,
                ChosenShardings chosen);

  /// Runs the program. `arguments` are the parameters and then the captured values, each a stored
  /// tensor. Host values are placed with the program's shardings, once.
  /// @post results[i] is a stored tensor
  /// @error an argument is gone or does not fit; the message uses its name in `names`, if present.
  /// Nothing is consumed before the launch.
  void run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
           SourceLocation where, std::span<const std::string> names = {}) const {
    (void)run(arguments, results, where, names, /*track=*/false);
  }

  /// The same, and returns the launch that computes the results.
  pjrt::Launch run_tracked(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                           SourceLocation where, std::span<const std::string> names = {}) const {
    return run(arguments, results, where, names, /*track=*/true);
  }
  /// False after a restart of the runtime, which replaces its client, and if NaN checks were turned
  /// on or off.
  bool is_current() const {
    return generation_ == internal::runtime_generation.load(std::memory_order_relaxed) &&
           (lowered_.nan_checks != nullptr) == checks_nans();
  }

  const LoweredModule& lowered() const { return lowered_; }
  const pjrt::LoadedExecutable& executable() const { return executable_; }
  const ChosenShardings& shardings() const { return chosen_; }
  const pjrt::Client& client() const { return client_; }

 private:
  // Logical device d uses buffer order[d] of the argument's array; empty: buffer d.
  struct ArgumentPlan {
    std::vector<std::uint32_t> order;
  };
  pjrt::Launch run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                   SourceLocation where, std::span<const std::string> names, bool track) const;
  Result<pjrt::Launch> launch(std::span<const pjrt::Buffer* const> arguments,
                              std::span<pjrt::Buffer> results, SourceLocation where,
                              bool track) const;
  // Moves the results of a launch, in device-major order, into tensors.
  void take_results(std::span<pjrt::Buffer> made, std::span<Tensor> results,
                    SourceLocation where) const;
  StoragePtr on_devices(std::size_t argument, const Tensor& tensor, SourceLocation where) const;
  // Makes equal shardings copies of one, which compare by pointer when a result is passed as an
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

/// Compiles `lowered` for the devices of its mesh. `where` is the user's source line, for traces.
Result<std::shared_ptr<const LoadedProgram>> load_program(const pjrt::Client& client,
                                                          LoweredModule lowered,
                                                          SourceLocation where = {});

}  // namespace meshard
