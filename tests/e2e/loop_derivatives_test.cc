// Derivatives of a loop whose backward pass computes most values again, against those of the plain
// form.
#include "meshard/meshard.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using LoopDerivatives = OnDevices;

auto is_close_to(const Tensor& expected) {
  return testing::Pointwise(testing::DoubleNear(1e-12), expected.to_vector<double>());
}

// Three layers, each a normalization, a gated MLP and dropout, with slices of one weight.
Tensor gated_layers(const Tensor& x, const Tensor& weights, bool as_loop) {
  auto layer = [](const Tensor& c, const Tensor& w, const Tensor& key) {
    Tensor h = c * rsqrt(mean(square(c), -1, true) + 1e-3);
    Tensor hidden = dropout(silu(matmul(h, w)) * matmul(h, w + 1), 0.25, key);
    return tanh(c + matmul(gelu(hidden), permute_dims(w, {1, 0})));
  };
  Tensor keys = random::split_into(random::key(3), {3});
  if (as_loop)
    return scan(
               [&](const Tensor& c, const std::pair<Tensor, Tensor>& slice) {
                 Tensor next = layer(c, slice.first, slice.second);
                 return std::pair(next, next);
               },
               x, std::pair(weights, keys))
        .first;
  Tensor c = x;
  for (std::int64_t i = 0; i < 3; ++i) c = layer(c, index(weights, {i}), index(keys, {i}));
  return c;
}

// The loop computes most values again in its backward pass; the plain form keeps all of them.
TEST_F(LoopDerivatives, AreThoseOfThePlainForm) {
  Tensor weights = sin(astype(reshape(arange(3 * 4 * 6), {3, 4, 6}), DType::f64));
  Tensor x = cos(astype(reshape(arange(2 * 4), {2, 4}), DType::f64));
  auto in_form = [](bool as_loop) {
    return [as_loop](const Tensor& t, const Tensor& w) {
      return sum(square(gated_layers(t, w, as_loop)));
    };
  };
  auto gradients = [&](bool as_loop) {
    return [f = in_form(as_loop)](const Tensor& t, const Tensor& w) { return grad<0, 1>(f)(t, w); };
  };
  auto second = [&](bool as_loop) {
    return [g = gradients(as_loop)](const Tensor& t, const Tensor& w) {
      return grad<0, 1>([&](const Tensor& a, const Tensor& b) {
        auto [first, other] = g(a, b);
        return sum(sin(first)) + sum(square(other));
      })(t, w);
    };
  };
  auto forward = [&](bool as_loop) {
    return [f = in_form(as_loop)](const Tensor& t, const Tensor& w) {
      return jvp([&](const Tensor& a) { return f(a, w); }, t, cos(t)).second;
    };
  };
  auto [dx, dw] = jit(gradients(true))(x, weights);
  auto [plain_dx, plain_dw] = jit(gradients(false))(x, weights);
  EXPECT_THAT(dx.to_vector<double>(), is_close_to(plain_dx));
  EXPECT_THAT(dw.to_vector<double>(), is_close_to(plain_dw));
  auto [ddx, ddw] = jit(second(true))(x, weights);
  auto [plain_ddx, plain_ddw] = jit(second(false))(x, weights);
  EXPECT_THAT(ddx.to_vector<double>(),
              testing::Pointwise(testing::DoubleNear(1e-9), plain_ddx.to_vector<double>()));
  EXPECT_THAT(ddw.to_vector<double>(),
              testing::Pointwise(testing::DoubleNear(1e-9), plain_ddw.to_vector<double>()));
  EXPECT_NEAR(jit(forward(true))(x, weights).item<double>(),
              jit(forward(false))(x, weights).item<double>(), 1e-10);
  auto batched = [&](bool as_loop) {
    return [g = gradients(as_loop)](const Tensor& t, const Tensor& w) {
      return vmap([&](const Tensor& a) { return std::get<0>(g(a, w)); })(t);
    };
  };
  Tensor batch = stack({x, x * 2, x - 1});
  EXPECT_THAT(jit(batched(true))(batch, weights).to_vector<double>(),
              is_close_to(jit(batched(false))(batch, weights)));
}

}  // namespace
}  // namespace meshard
