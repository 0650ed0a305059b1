// Tested in meshard/runtime/imported_program_test.cc.
#include "meshard/runtime/internal/outside_calls.h"

#include <algorithm>
#include <iterator>

#include "meshard/base/cat.h"
#include "meshard/lapack/lapack_calls.h"
#include "meshard/stablehlo/outside_ops.h"

namespace meshard {
namespace {

// Targets that compilers of XLA replace themselves, on all platforms.
constexpr std::string_view kKnownTargets[] = {
    "AllocateBuffer",
    "ApproxTopK",
    "CreateBuffer",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Pin",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "Sharding",
    "TopK",
    "Unpin",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
};
constexpr std::string_view kKnownPrefixes[] = {"chlo.", "mhlo.", "stablehlo.", "xla.sdy."};

bool is_known(std::string_view target) {
  return std::ranges::find(kKnownTargets, target) != std::end(kKnownTargets) ||
         std::ranges::any_of(kKnownPrefixes,
                             [&](std::string_view prefix) { return target.starts_with(prefix); });
}

bool calls_python(std::string_view target) {
  return target.find("python") != std::string_view::npos &&
         target.find("callback") != std::string_view::npos;
}

// Why an op cannot run; empty if it can.
std::string_view reason(const stablehlo::OutsideOp& op, std::string_view platform,
                        bool several_platforms) {
  if (op.name != "custom_call")
    return "exchanges values with the program that exported it. Return them, or pass them as "
           "arguments";
  if (calls_python(op.target))
    return "calls a function of the Python program that exported it (pure_callback, io_callback, "
           "debug.print, debug.callback). Export the program without it, and call the function "
           "between two exported programs";
  // Their compilers have calls of their own, and the code of other platforms is not compiled.
  if (platform != "cpu" || several_platforms || is_known(op.target)) return "";
  return "calls a function that this platform's compiler does not have. Export the program for "
         "this platform, or write what it computes as ops of StableHLO";
}

}  // namespace

Result<void> prepare_calls(std::string_view module, const pjrt::Client& client,
                           bool several_platforms) {
  const bool is_cpu = client.platform() == "cpu";
  MESHARD_ASSIGN_OR_RETURN(std::vector<stablehlo::OutsideOp> ops, stablehlo::outside_ops(module));
  for (const stablehlo::OutsideOp& op : ops) {
    std::string described = cat("`", op.name, op.target.empty() ? "" : cat(" @", op.target), "`",
                                op.place.empty() ? "" : cat(" of ", op.place));
    if (is_cpu && is_lapack_target(op.target)) {
      Result<void> accepted = accept_lapack_call(client, op.target);
      if (!accepted.ok())
        return Error(accepted.error().code(),
                     cat(described, " needs LAPACK: ", accepted.error().message()));
      continue;
    }
    std::string_view why = reason(op, client.platform(), several_platforms);
    if (!why.empty()) return Error(ErrorCode::kUnimplemented, cat(described, " ", why));
  }
  return {};
}

}  // namespace meshard
