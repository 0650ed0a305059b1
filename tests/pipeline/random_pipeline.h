// Random models in stages, as data: what the stages compute, where they run, and in which order.
#pragma once
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace meshard::property {

/// One operation of a stage. Values are [rows, width], numbered over the whole model; 0 and 1 are
/// parts of the microbatch.
struct PipelineStep {
  enum class Kind {
    kMatmul,      ///< a times a parameter [width of a, width]
    kTransposed,  ///< a times the transpose of a parameter [width, width of a]
    kBias,        ///< a plus a parameter [width]
    kScale,       ///< a times a parameter of rank 0
    kLookup,      ///< rows of a parameter [kClasses, width], chosen by the labels
    kConstant,    ///< a times a constant [width] that the stage's function captures
    kTanh,
    kSoftmax,
    kAdd,       ///< a + b
    kMultiply,  ///< a * b
  };
  Kind kind = Kind::kTanh;
  int a = 0, b = 0, parameter = 0;  // or the number of the constant
  /// Names of mesh axes, or none, for the rows and the width of the result.
  std::optional<PartitionSpec> mark;
};
inline constexpr std::int64_t kClasses = 3;

/// A parameter or a constant.
struct PipelineNumbers {
  Shape shape;
  /// Where it is before the pipeline places it; none: on the host.
  std::optional<Sharding> sharding;
};

struct PipelinePart {
  Mesh mesh;
  bool checkpoint = false;
  std::vector<int> parameters;
  std::vector<PipelineStep> steps;
  /// The values that it returns, among those that it has received or made; of the last stage, the
  /// values of which it computes the loss.
  std::vector<int> returned;
  /// Whether the labels, which are integers, are the last of what it returns.
  bool returns_labels = false;
};

struct RandomPipeline {
  DType dtype = DType::f64;
  std::int64_t rows = 1;             // of a microbatch
  std::vector<std::int64_t> widths;  // by value
  std::vector<PipelineNumbers> parameters, constants;
  std::vector<PipelinePart> parts;
  std::optional<Sharding> batch;  // of the microbatches; none: they are on the host
  PipelineSchedule schedule;
  double clip = 0;

  /// The loss of a batch with the tensors of `parameters`, undivided.
  Tensor loss(const std::vector<Tensor>& parameters, const std::vector<Tensor>& batch) const;
  /// The stages; `parameters` are the tensors of all parameters.
  std::vector<PipelineStage> stages(const std::vector<Tensor>& parameters) const;
  std::string to_string() const;
};

RandomPipeline draw_pipeline(std::mt19937_64& random);

/// Numbers of both signs that differ from tensor to tensor, as a tensor on the host.
Tensor some_numbers(const Shape& shape, int seed, DType dtype);

}  // namespace meshard::property
