// The schedules in common use.
#pragma once
#include "meshard/base/source_location.h"
#include "meshard/pipeline/schedule/schedule.h"

namespace meshard {

/// All forward passes, then all backward passes. Every stage keeps the activations of all
/// microbatches.
///
/// Source: Y. Huang et al., GPipe (2019).
/// @post with equal stages, the fraction of time that workers wait is (p-1)/(m+p-1) for p stages
/// and m microbatches
/// @error invalid argument, thrown: stages or microbatches is less than 1
PipelineSchedule gpipe(int stages, int microbatches,
                       SourceLocation where = SourceLocation::current());

/// 1F1B: stage s begins with p-s-1 forward passes, then does one forward and one backward pass in
/// turns.
///
/// Source: D. Narayanan et al., PipeDream (2019), and Memory-Efficient Pipeline-Parallel DNN
/// Training (2021), "PipeDream-Flush".
/// @post waiting as for gpipe(); stage s keeps the activations of min(m, p-s) microbatches
/// @error as for gpipe()
PipelineSchedule one_forward_one_backward(int stages, int microbatches,
                                          SourceLocation where = SourceLocation::current());

/// Interleaved 1F1B: worker w works for the stages w, w+p, w+2p, ... (`chunks` of them). The
/// waiting at the ends is that of a stage, which is one chunk's time shorter.
///
/// Source: D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM (2021), 2.2.
/// @post chunks * workers stages; if m is a multiple of p, workers wait for (p-1)/(vm+p-1) of the
/// time, for v chunks
/// @error invalid argument, thrown: a number is less than 1, or the microbatches cannot be divided
/// into max(1, m/p) equal rounds
PipelineSchedule interleaved(int workers, int chunks, int microbatches,
                             SourceLocation where = SourceLocation::current());

/// ZB-H1: like 1F1B, but the gradients of the parameters are computed later than those of the
/// inputs, where a worker would otherwise wait.
///
/// Source: P. Qi et al., Zero Bubble Pipeline Parallelism (2023), "ZB-H1".
/// @post if forward, input gradient and weight gradient take equal times and m >= p, workers wait
/// for (p-1)/(3m+p-1) of the time, a third of what they wait for in 1F1B; no stage keeps the
/// activations of more than p microbatches
/// @error as for gpipe()
PipelineSchedule zero_bubble(int stages, int microbatches,
                             SourceLocation where = SourceLocation::current());

}  // namespace meshard
