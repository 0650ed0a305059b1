#include "meshard/ops/composite/frequency.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

void check_samples(std::string_view name, std::int64_t n, DType dtype, SourceLocation where) {
  if (n < 1 || !is_floating(dtype))
    throw_invalid(effective_source(where), "[", name, "] takes 1 or more samples and a float, not ",
                  n, " and ", dtype);
}

// Converts whole numbers of cycles to frequencies.
Tensor over_duration(const Tensor& cycles, std::int64_t n, double spacing) {
  return multiply(cycles, element_wise::literal(1 / (static_cast<double>(n) * spacing), cycles));
}

Tensor moved_by_half(std::string_view name, const In& x, const DimensionList& dimensions,
                     bool back) {
  SourceScope line(x.where);
  Tensor result = operand_tensor(name, x);
  for (std::int64_t d :
       dimensions.resolve(result.shape().rank(), name, effective_source(x.where))) {
    std::int64_t half = result.dim(d) / 2;
    result = roll(result, back ? -half : half, d);
  }
  return result;
}

}  // namespace

Tensor fftfreq(std::int64_t n, double spacing, DType dtype, SourceLocation where) {
  SourceScope line(where);
  check_samples("fftfreq", n, dtype, where);
  // Whole numbers from -(n / 2) on, rolled so that the negative ones come last.
  Tensor counted = iota(dtype, Shape{n}, 0);
  Tensor from_lowest =
      subtract(counted, element_wise::literal(static_cast<double>(n / 2), counted));
  return over_duration(roll(from_lowest, -(n / 2), 0), n, spacing);
}

Tensor rfftfreq(std::int64_t n, double spacing, DType dtype, SourceLocation where) {
  SourceScope line(where);
  check_samples("rfftfreq", n, dtype, where);
  return over_duration(iota(dtype, Shape{n / 2 + 1}, 0), n, spacing);
}

Tensor fftshift(In x, DimensionList dimensions) {
  return moved_by_half("fftshift", x, dimensions, false);
}

Tensor ifftshift(In x, DimensionList dimensions) {
  return moved_by_half("ifftshift", x, dimensions, true);
}

Tensor hfft(In x, std::optional<std::int64_t> n, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor real = irfft(conj(operand_tensor("hfft", x)), n, dimension);
  return multiply(real, real.dim(dimension));
}

Tensor ihfft(In x, std::optional<std::int64_t> n, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor samples = operand_tensor("ihfft", x);
  Tensor half = conj(rfft(samples, n, dimension));
  return divide(half, n.value_or(samples.dim(dimension)));
}

}  // namespace meshard
