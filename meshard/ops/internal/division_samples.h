// Tested in meshard/ops/remainder_test.cc.
#pragma once
#include <vector>

#include "meshard/ops/definition/element_wise.h"

namespace meshard::internal {

/// Samples of an op that jumps where the quotient of its operands is a whole number.
/// @param with_unsigned adds a sample of unsigned integers
inline std::vector<OpSample> division_samples(SampleSource& source, Tensor (*op)(In, In),
                                              bool with_unsigned) {
  auto call = [op](std::span<const Tensor> x) { return op(x[0], x[1]); };
  // Keeps the quotients away from whole numbers.
  HostArray off_whole = HostArray::from_vector<double>({0.5, -0.75, 1.25, 3.5}, {4});
  HostArray divisors = HostArray::from_vector<double>({1, 0.5, -1, -2}, {4});
  std::vector<OpSample> samples = element_wise::binary_samples(source, op, 0.5, 2.5);
  for (OpSample& sample : samples) sample.check_vjp = false;
  samples.push_back({"f64 of all signs", {off_whole, divisors}, call});
  auto add_integers = [&](const char* name, DType dtype, double low, double high) {
    samples.push_back(
        {name,
         {source.uniform(dtype, {4, 8}, low, high), source.uniform(dtype, {4, 8}, 1, 7)},
         call,
         false});
  };
  add_integers("i32", DType::i32, -20, 20);
  if (with_unsigned) add_integers("u8", DType::u8, 0, 200);
  return samples;
}

}  // namespace meshard::internal
