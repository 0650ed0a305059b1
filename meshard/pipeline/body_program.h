// A body that is compiled and called with the values of its parameters.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {

/// What a BodyProgram does beside the body.
struct BodyProgramOptions {
  std::string name = "main";
  /// The number of first results that are added to accumulators, in the accumulators' memory.
  std::size_t accumulated = 0;
  /// The value of the first parameter, a constant; none: it is a parameter as the others.
  std::optional<double> first_parameter = std::nullopt;
};

/// A handle on the jitted form of a body. Parameters that no result needs are not passed to the
/// compiled program.
class BodyProgram {
 public:
  BodyProgram() = default;
  BodyProgram(Body body, const BodyProgramOptions& options, SourceLocation where);

  const Body& body() const { return body_; }
  /// The numbers of the parameters that the program needs, in order.
  const std::vector<std::size_t>& used() const { return used_; }
  /// Runs the program without waiting for it.
  /// @param accumulators one for each accumulated result, on the devices of the program. They are
  /// gone afterward.
  /// @param values one for each parameter; those that are not used may be undefined
  /// @return the results; the accumulated ones are the new accumulators
  std::vector<Tensor> operator()(const std::vector<Tensor>& accumulators,
                                 const std::vector<Tensor>& values) const;

  /// Hands the jitted function and the arguments of a call to `use`, which compiles it elsewhere.
  template <class Use>
  auto with_call(const std::vector<Tensor>& accumulators, const std::vector<Tensor>& values,
                 const Use& use) const {
    std::vector<Tensor> given;
    for (std::size_t i : used_) given.push_back(values[i]);
    return use(*jit_, accumulators, given);
  }

 private:
  struct Run {
    Body body;
    std::vector<std::size_t> used;
    BodyProgramOptions options;
    std::vector<Tensor> operator()(const std::vector<Tensor>& accumulators,
                                   const std::vector<Tensor>& values) const;
  };

  Body body_;
  std::vector<std::size_t> used_;
  std::optional<Jit<Run>> jit_;
};

}  // namespace meshard::internal
