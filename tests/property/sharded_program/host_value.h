// What operations do, on the host in double precision: a reference that shares nothing with the
// library. Derivatives are differences, loops are loops.
#pragma once
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "tests/property/sharded_program/operation.h"

namespace meshard::property {

struct HostValue {
  Shape shape;
  std::vector<double> values;  ///< in row-major order
};

/// What the host form of an operation gets.
struct HostArguments {
  const std::vector<HostValue>& operands;
  const Step& step;
  std::function<std::vector<HostValue>(int, std::vector<HostValue>)> call;

  const HostValue& operator[](std::size_t i) const { return operands[i]; }
  const std::vector<std::int64_t>& list(std::size_t i) const { return step.lists[i]; }
  std::int64_t number(std::size_t i) const { return step.lists[i].at(0); }
  HostValue body(int i, std::vector<HostValue> arguments) const {
    return call(i, std::move(arguments)).at(0);
  }
};

/// That a program has no derivative at its inputs, or values out of proportion.
struct NotSmooth : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace host {

HostValue scalar(double value);
/// Element i of the result is `element(coordinate of i)`.
HostValue make(Shape shape, const std::function<double(const Dimensions&)>& element);
double at(const HostValue& value, const Dimensions& coordinate);
/// The slice of a value at this place of its first dimension, and slices put together.
HostValue slice(const HostValue& value, std::int64_t i);
HostValue stacked(const std::vector<HostValue>& slices);
HostValue add(const HostValue& a, const HostValue& b, double times);

inline double negative(double x) { return -x; }
inline double square(double x) { return x * x; }
inline double scale(double x) { return 0.5 * x + 3; }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }
template <double (*f)(double)>
HostValue unary(const HostArguments& args) {
  HostValue result = args[0];
  for (double& x : result.values) x = f(x);
  return result;
}
HostValue same(const HostArguments& args);
HostValue sum_of_two(const HostArguments& args);
HostValue difference(const HostArguments& args);
HostValue product(const HostArguments& args);
HostValue matmul(const HostArguments& args);
HostValue sum(const HostArguments& args);
HostValue mean(const HostArguments& args);
HostValue softmax(const HostArguments& args);
HostValue permute_dims(const HostArguments& args);
HostValue reshape(const HostArguments& args);
HostValue broadcast_to(const HostArguments& args);
HostValue slice_of(const HostArguments& args);
HostValue flip(const HostArguments& args);
HostValue concat(const HostArguments& args);
HostValue stack(const HostArguments& args);
HostValue cumulative_sum(const HostArguments& args);
HostValue dynamic_slice(const HostArguments& args);
/// @error NotSmooth: two elements are close together
HostValue sort(const HostArguments& args);

/// The derivative of `f` at `x` in the direction `dx`, by differences.
using HostFunction = std::function<HostValue(const HostValue&)>;
HostValue derivative(const HostFunction& f, const HostValue& x, const HostValue& dx);
/// The gradient at `x` of a function with a result of rank 0.
HostValue gradient(const HostFunction& f, const HostValue& x);

}  // namespace host

/// Runs steps on the host.
class HostEvaluator {
 public:
  HostEvaluator() { frames_.emplace_back(); }
  void add_input(const Input& input);
  /// @error NotSmooth
  const HostValue& add(const Step& step);
  const HostValue& value(Ref ref) const;
  void cut(std::size_t inputs, std::size_t steps);

 private:
  struct Frame {
    std::vector<HostValue> inputs, steps;
  };
  std::vector<HostValue> call(const Body& body, std::vector<HostValue> arguments);
  std::vector<Frame> frames_;
  int calls_ = 0;  // of bodies, since the last step of the program
};

}  // namespace meshard::property
