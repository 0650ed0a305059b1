// One piece of work of a pipeline.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/enum_names.h"
#include "meshard/base/result.h"

namespace meshard {

/// The kinds of work of a stage of a pipeline. The letters are those of PyTorch's schedules
/// (torch.distributed.pipelining).
enum class PipelineWork {
  kForward,         ///< the stage's function for one microbatch
  kBackward,        ///< the gradients of the stage's inputs and of its parameters
  kInputGradient,   ///< the gradients of the inputs only; kWeightGradient follows
  kWeightGradient,  ///< the gradients of the parameters only
  kUpdate,          ///< the optimizer's step, after all microbatches
  kSendForward,     ///< the result of kForward goes to the next stage
  kSendBackward,    ///< the gradients of the inputs go to the previous stage
};

template <>
struct EnumNames<PipelineWork> {
  static constexpr EnumName<PipelineWork> kNames[] = {
      {PipelineWork::kForward, "forward"},
      {PipelineWork::kBackward, "backward"},
      {PipelineWork::kInputGradient, "input gradient"},
      {PipelineWork::kWeightGradient, "weight gradient"},
      {PipelineWork::kUpdate, "update"},
      {PipelineWork::kSendForward, "send forward"},
      {PipelineWork::kSendBackward, "send backward"},
  };
};

/// The letters of the text form: `F`, `B`, `I`, `W`, `U`, `SEND_F`, `SEND_B`.
std::string_view letters(PipelineWork work);

/// Value type: one piece of work of one stage.
struct PipelineAction {
  PipelineWork work = PipelineWork::kForward;
  int stage = 0;
  /// 0 for an update, which belongs to all microbatches.
  int microbatch = 0;

  /// Stage, letters and microbatch: `2F5`, `0SEND_F1`; an update has no microbatch: `2U`.
  std::string to_string() const;
  /// Reads what to_string() writes. @error invalid argument, with the text
  static Result<PipelineAction> parse(std::string_view text);
  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

/// True for the work that computes the gradients of a stage's inputs: kBackward, kInputGradient.
constexpr bool gives_input_gradient(PipelineWork work) {
  return work == PipelineWork::kBackward || work == PipelineWork::kInputGradient;
}
/// True for the work after which a stage no longer needs what its forward pass kept: kBackward,
/// kWeightGradient.
constexpr bool ends_microbatch(PipelineWork work) {
  return work == PipelineWork::kBackward || work == PipelineWork::kWeightGradient;
}
/// True for kSendForward and kSendBackward, which keep no device busy.
constexpr bool is_send(PipelineWork work) {
  return work == PipelineWork::kSendForward || work == PipelineWork::kSendBackward;
}

}  // namespace meshard
