// A program that was compiled and loaded on its devices, and can be called.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/graph/evaluator.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"
#include "meshard/runtime/chosen_shardings.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/nan_check.h"
#include "meshard/runtime/tiles.h"

namespace meshard {

namespace internal {

/// Whether a program's launches end inside the plugin's call, as those of small programs for one
/// CPU do. They need not be remembered as being in flight. A program whose launches never do is
/// asked rarely. Thread-safe.
class LaunchesThatEnd {
 public:
  /// Calls `execute`, which launches the program with the options that it is given.
  template <class Execute>
  [[gnu::always_inline]] Result<pjrt::Launch> ask(const pjrt::LaunchOptions& options,
                                                  const Execute& execute) const {
    if (options.track || !is_worth_asking()) return execute(options);
    bool ended = false;
    pjrt::LaunchOptions asking = options;
    asking.ended = &ended;
    Result<pjrt::Launch> launch = execute(asking);
    const std::uint8_t late = late_.load(std::memory_order_relaxed);
    const int next = ended ? 0 : std::min(late + 1, int{kManyInARow});
    if (next != late) late_.store(static_cast<std::uint8_t>(next), std::memory_order_relaxed);
    return launch;
  }

 private:
  static constexpr std::uint8_t kManyInARow = 16, kRarely = 64;
  bool is_worth_asking() const {
    const std::uint8_t late = late_.load(std::memory_order_relaxed);
    if (late < kManyInARow || late == kManyInARow + kRarely) return true;
    late_.store(static_cast<std::uint8_t>(late + 1), std::memory_order_relaxed);
    return false;
  }
  // How many launches in a row had not ended; from kManyInARow on, unchecked launches count, too.
  mutable std::atomic<std::uint8_t> late_{0};
};

}  // namespace internal

/// An immutable loaded program. Shared; several threads may call it. Each fabric
/// (internal/fabric.h) has its own kind, which launches it.
class LoadedProgram {
 public:
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;
  virtual ~LoadedProgram() = default;

  /// True if the array has the sharding of argument `i` (the parameters, then the captured values),
  /// on the program's devices.
  bool accepts(std::size_t i, const DeviceArray& array) const {
    return array.is_current() &&
           (array.sharded_type()->is_copy_of(argument_types_[i]) ||
            has_sharding_of(i, array.sharding())) &&
           (array.sharding() || &array.buffers()[0].device() == executable_->devices()[0]);
  }
  /// The type and sharding of argument `i`. A result that has both has a copy of it.
  const ShardedType& argument_type(std::size_t i) const { return argument_types_[i]; }
  /// Launches the program. Nothing is placed, moved or compiled. If `track`, the launch reports
  /// when it is done and whether it failed.
  /// @pre accepts() each argument, or its sharding is equivalent
  /// @post if it succeeds, results[i] is a stored tensor
  /// @error the plugin's errors; failed precondition if an argument is gone. Nothing is consumed.
  /// Thrown, after the launch: the errors of internal::throw_found_nan().
  virtual Result<pjrt::Launch> launch(std::span<const DeviceArray* const> arguments,
                                      std::span<Tensor> results, SourceLocation where,
                                      bool track = false) const = 0;
  /// Launches a program for one device, which donates nothing, with single buffers there of any
  /// owner. The results belong to the caller.
  /// @pre results.size() is the number of results
  /// @error as for launch()
  Result<void> launch_on_views(std::span<const pjrt::BufferView> arguments,
                               std::span<pjrt::Buffer> results, SourceLocation where) const;
  /// False after a restart of the runtime, which replaces its client, and if NaN checks were turned
  /// on or off.
  bool is_current() const {
    return generation_ == platforms_.generation() &&
           (lowered_.is_imported || (lowered_.nan_checks != nullptr) == checks_nans());
  }

  /// Whether the executable was loaded from bytes. The CPU plugin serializes such an executable
  /// without its functions, so that a program that is loaded from it fails when it runs.
  virtual bool is_from_bytes() const { return false; }

  const LoweredModule& lowered() const { return lowered_; }
  /// The part of this process, if the program runs on devices of several.
  /// @error failed precondition if this process has no part
  const pjrt::LoadedExecutable& executable() const {
    if (!executable_) [[unlikely]]
      fail_elsewhere();
    return *executable_;
  }
  /// Calls `look` with the program for all its devices, as one process would run it; for reports.
  /// It is compiled for that if the devices belong to several processes.
  /// @error the compiler's error; the error of `look`
  virtual Result<void> look_at_whole(
      const std::function<Result<void>(const pjrt::LoadedExecutable&)>& look) const;
  const ChosenShardings& shardings() const { return chosen_; }
  const pjrt::Client& client() const { return client_; }

 protected:
  /// @param executable runs the part of this process; none if it has no part
  /// @param donated the arguments whose memory the program takes, if it has no part here
  /// @pre `platforms` owns the client
  LoadedProgram(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
                std::optional<pjrt::LoadedExecutable> executable, ChosenShardings chosen,
                std::vector<std::uint32_t> donated = {});

  using Arrays = std::span<const DeviceArray* const>;
  using Lists = std::span<const pjrt::BufferList* const>;
  using Made = std::span<pjrt::BufferList>;
  // What launch() does around the call of the plugin: `execute(arguments, results, options)` or,
  // while events are recorded, the same by `recorded`. `id` is LaunchOptions' id. Defined in
  // internal/launch_program.h.
  template <class Execute, class Recorded>
  inline Result<pjrt::Launch> launch_by(int id, const Execute& execute, const Recorded& recorded,
                                        Arrays arguments, std::span<Tensor> results,
                                        SourceLocation where, bool track) const;
  // What launch() does if the program runs elsewhere: its results have no shards here.
  Result<pjrt::Launch> skip(Arrays arguments, std::span<Tensor> results,
                            SourceLocation where) const;
  bool has_part() const { return executable_.has_value(); }

  const internal::LaunchesThatEnd ends_;

 private:
  bool has_sharding_of(std::size_t i, const Sharding* sharding) const {
    return (sharding && written_[i] && written_[i]->is_copy_of(*sharding)) ||
           same_sharding(sharding, chosen_.arguments[i]);
  }
  // launch_by() while events are recorded.
  Result<pjrt::Launch> launch_recorded(
      FunctionRef<Result<pjrt::Launch>(const pjrt::LaunchOptions&)> recorded,
      const pjrt::LaunchOptions& options) const;
  Error elsewhere() const;
  [[noreturn]] void fail_elsewhere() const;
  // Moves the results of a launch into tensors.
  void take_results(std::span<pjrt::BufferList> made, std::span<Tensor> results,
                    SourceLocation where) const;
  void order_results();
  // Makes equal shardings copies of one, and then equal types with equal shardings, which compare
  // by pointer when a result is passed as an argument.
  void share_equal_shardings();
  void share_equal_types();

  const Platforms& platforms_;
  pjrt::Client client_;
  LoweredModule lowered_;
  std::optional<pjrt::LoadedExecutable> executable_;
  // Equal shardings are copies of one, so that a result is recognized as an argument by a glance.
  ChosenShardings chosen_;
  // chosen_.arguments as the text has them: often copies of the arguments' own.
  std::vector<std::optional<Sharding>> written_;
  // The types and shardings of chosen_.
  std::vector<ShardedType> argument_types_, result_types_;
  // The devices of a result in the order of its mesh, and their positions in the program's order.
  struct ResultOrder {
    const pjrt::DeviceList* devices = nullptr;  // null: the order of the program
    std::vector<std::uint32_t> positions;
  };
  std::vector<ResultOrder> result_orders_;
  std::vector<std::uint32_t> donated_;
  std::uint32_t generation_ = platforms_.generation();
};

/// A compiled program and what it was made from; used by explain/.
struct ProgramView {
  const LoadedProgram& program;
  const Graph& graph;
  /// Names of the parameters for messages: one for each, or none.
  const std::vector<std::string>& parameter_names;
  const std::vector<std::uint32_t>& donated;
};
/// What a compiled program is made of. @pre the runtime's evaluator compiled the program
ProgramView view_of(const CompiledProgram& program);

}  // namespace meshard
