// The heat equation of examples/heat: both versions give the values of a plain loop, and the
// gradient is the derivative.
#include "examples/heat/heat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"

namespace heat {
namespace {

using namespace meshard;

using Heat = OnPlugin;

constexpr std::int64_t kSize = 16;

std::vector<double> by_loops(std::vector<double> u, int steps) {
  auto at = [&](std::int64_t i, std::int64_t j) {
    bool inside = i >= 0 && j >= 0 && i < kSize && j < kSize;
    return inside ? u[static_cast<std::size_t>(i * kSize + j)] : 0.0;
  };
  for (int k = 0; k < steps; ++k) {
    std::vector<double> next(u.size());
    for (std::int64_t i = 0; i < kSize; ++i)
      for (std::int64_t j = 0; j < kSize; ++j)
        next[static_cast<std::size_t>(i * kSize + j)] =
            at(i, j) +
            kCourant * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j));
    u = next;
  }
  return u;
}

TEST_F(Heat, BothWaysGiveWhatALoopGives) {
  Mesh mesh({{"rows", 2}, {"columns", 4}});
  Tensor start = warm_disc(mesh, kSize);
  std::vector<double> expected = by_loops(start.to_vector<double>(), 5);
  auto near = testing::Pointwise(testing::DoubleNear(1e-14), expected);
  auto shifts = jit([](const Tensor& u) { return by_shifts(u, 5); });
  auto exchange = jit([&](const Tensor& u) { return by_exchange(mesh, u, 5); });
  EXPECT_THAT(shifts(start).to_vector<double>(), near);
  EXPECT_THAT(exchange(start).to_vector<double>(), near);
  // Neighbors exchange boundary lines; nothing is gathered.
  for (const ProgramReport& report : {explain(shifts), explain(exchange)}) {
    EXPECT_FALSE(report.groups().empty());
    for (const CollectiveGroup& group : report.groups())
      EXPECT_THAT(cat(group), testing::HasSubstr("collective-permute"));
  }
}

TEST_F(Heat, TheGradientIsTheDerivative) {
  Mesh mesh({{"rows", 2}, {"columns", 2}});
  Tensor start = warm_disc(mesh, kSize), observed = by_exchange(mesh, start, 6);
  Tensor state = start * 0.5,
         direction = random::normal(random::key(2), {kSize, kSize}, DType::f64);
  auto loss_at = [&](const Tensor& u) { return misfit(u, observed, 6); };
  double h = 1e-4, product = sum(grad(loss_at)(state) * direction).item<double>();
  double quotient =
      (loss_at(state + h * direction) - loss_at(state - h * direction)).item<double>() / (2 * h);
  EXPECT_NEAR(product, quotient, 1e-8 * std::abs(quotient) + 1e-12);
  auto exchanged = [&](const Tensor& u) {
    return mean(square(by_exchange(mesh, u, 6) - observed));
  };
  EXPECT_THAT(
      grad(exchanged)(state).to_vector<double>(),
      testing::Pointwise(testing::DoubleNear(1e-15), grad(loss_at)(state).to_vector<double>()));
}

}  // namespace
}  // namespace heat
