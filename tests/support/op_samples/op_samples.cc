#include "tests/support/op_samples/op_samples.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace meshard {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t SampleSource::next() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

HostArray SampleSource::uniform(DType dtype, Shape shape, double low, double high) {
  auto count = static_cast<std::size_t>(shape.size());
  if (is_floating(dtype)) {
    std::vector<double> values(count);
    for (double& value : values)
      value = low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
    return HostArray::from_vector(std::move(values), std::move(shape)).astype(dtype);
  }
  if (is_complex(dtype)) {
    std::vector<Complex128> values(count);
    for (Complex128& value : values)
      for (double* part : {&value.real, &value.imag})
        *part = low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
    return HostArray::from_vector(std::move(values), std::move(shape)).astype(dtype);
  }
  auto [least, most] = integer_limits(dtype);
  double first = std::max(std::ceil(low), static_cast<double>(least));
  double last = std::min(std::floor(high), static_cast<double>(most));
  auto choices = static_cast<std::uint64_t>(last - first) + 1;
  std::vector<std::int64_t> values(count);
  for (std::int64_t& value : values)
    value = static_cast<std::int64_t>(first) + static_cast<std::int64_t>(next() % choices);
  return HostArray::from_vector(std::move(values), std::move(shape)).astype(dtype);
}

HostArray SampleSource::distinct(DType dtype, Shape shape, double gap) {
  auto count = static_cast<std::size_t>(shape.size());
  bool is_whole = !is_inexact(dtype);
  if (is_whole) gap = std::max(1.0, std::ceil(gap));
  // Multiples of the gap, shifted by half a gap to avoid zero. Integers are not shifted; if the
  // dtype is unsigned, they start at zero.
  const std::size_t half = count / 2;
  double first = -static_cast<double>(half);
  if (is_whole && !is_signed(dtype)) first = 0;
  double offset = is_whole ? 0 : 0.5;
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = (first + static_cast<double>(i) + offset) * gap;
  for (std::size_t i = count; i > 1; --i) std::swap(values[i - 1], values[next() % i]);
  return HostArray::from_vector(std::move(values), std::move(shape)).astype(dtype);
}

std::vector<OpSample> samples_of(const OpDef& op, SampleSource& source) {
  for (const OpSampleTable* table : {&contraction_samples(), &element_wise_samples(),
                                     &linalg_samples(), &movement_samples(), &program_samples()})
    if (auto found = table->find(op.name); found != table->end()) return found->second(source);
  throw std::out_of_range("no samples of " + std::string(op.name));
}

}  // namespace meshard
