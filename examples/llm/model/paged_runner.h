// Runs a model for a server: several sequences in one step, with a cache in pages.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "examples/llm/model/cache.h"
#include "examples/llm/runner.h"

namespace llm {

/// A Runner on the devices of a mesh. Shapes are rounded up, so that few programs are compiled:
/// rows and pages to powers of two, the tokens of a chunk to powers of four; chunks of different
/// rounded sizes run one after the other. The cache is updated in place. Not thread-safe.
class PagedRunner : public Runner {
 public:
  /// @param limits vocabulary and context are those of the config, if 0; the others must be
  /// positive
  /// @error invalid argument: a limit that is not positive; fewer pages than one sequence may need
  PagedRunner(Model model, Config config, meshard::nn::AxisRules rules, RunnerLimits limits);

  [[nodiscard]] const RunnerLimits& limits() const override { return limits_; }
  /// @error invalid argument: chunks that are not within the limits
  std::vector<std::vector<float>> step(const std::vector<Chunk>& chunks) override;

  [[nodiscard]] const Config& config() const { return config_; }
  /// How many programs were compiled.
  [[nodiscard]] std::uint64_t programs() const { return step_.stats().traces; }

 private:
  using Step = std::function<std::pair<meshard::Tensor, PagedCache>(
      const Model&, const PagedTokens&, const PagedCache&, const meshard::Static<bool>&)>;
  void check(const Chunk& chunk) const;
  // Runs the chunks with these numbers, of at most `time` tokens, and sets their results.
  void run(const std::vector<Chunk>& chunks, const std::vector<std::size_t>& numbers,
           std::int64_t time, std::vector<std::vector<float>>& results);

  Model model_;
  Config config_;
  meshard::nn::AxisRules rules_;
  RunnerLimits limits_;
  PagedCache cache_;
  meshard::Jit<Step> step_;
};

}  // namespace llm
