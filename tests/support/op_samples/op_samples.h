// Sample calls of the ops, for the test suites that check every op in the same way.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/op_def.h"

namespace meshard {

/// A sample call of an op for the conformance suites.
struct OpSample {
  std::string name;
  std::vector<HostArray> inputs;
  std::function<Tensor(std::span<const Tensor>)> call;
  /// False if finite differences are not meaningful there (a kink, an integer-valued function).
  bool check_vjp = true;
};

/// Generates random sample inputs from a seed, reproducibly.
class SampleSource {
 public:
  explicit SampleSource(std::uint64_t seed) : state_(seed) {}
  /// Uniform in [low, high), rounded to `dtype`. Integers are in [low, high]; both parts of complex
  /// numbers are uniform.
  HostArray uniform(DType dtype, Shape shape, double low = -2.0, double high = 2.0);
  /// Values that differ by at least `gap`, in random order, to avoid ties in max and nearby kinks.
  HostArray distinct(DType dtype, Shape shape, double gap = 0.25);
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

/// The sample calls of an op of the op table: ranks 1 to 3 in f32; f64 for finite differences; a
/// size divisible by 4 for each factor; unusual cases.
/// @error std::out_of_range for an op that has none
std::vector<OpSample> samples_of(const OpDef& op, SampleSource& source);

/// Makes the samples of each op, by its name. Each file of this folder has those of some ops.
using OpSampleTable =
    std::map<std::string_view, std::function<std::vector<OpSample>(SampleSource&)>>;
const OpSampleTable& contraction_samples();
const OpSampleTable& element_wise_samples();
const OpSampleTable& linalg_samples();
const OpSampleTable& movement_samples();
const OpSampleTable& program_samples();

/// Samples of an op of one or two operands: float dtypes, several ranks, broadcasting, weakly typed
/// numbers. Elements are uniform in [low, high).
std::vector<OpSample> unary_samples(SampleSource& source, Tensor (*op)(In), double low = -2.0,
                                    double high = 2.0);
std::vector<OpSample> binary_samples(SampleSource& source, Tensor (*op)(In, In), double low = -2.0,
                                     double high = 2.0);

}  // namespace meshard
