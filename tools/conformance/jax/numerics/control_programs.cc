// while*, fori*, cond*, switch*, scan*: programs inside programs.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

// Newton's square root, until |y * y - x| < 1e-4.
Tensor square_root(const Tensor& x) {
  return while_loop([x](Tensor y) { return greater_equal(abs(y * y - x), 1e-4); },
                    [x](Tensor y) { return (y + x / y) * 0.5; }, x);
}

// Five steps of x * w + i.
Tensor five_steps(const Tensor& x, const Tensor& w) {
  auto step = [w](Tensor i, Tensor c) { return c * w + astype(i, c.dtype()); };
  return fori_loop(0, 5, step, x);
}

// Layers tanh(x W[i]); with the values on the way where the case has them.
Tensors layers(const Tensor& x, const Tensor& weights, bool reverse, bool recompute, bool all) {
  auto layer = [](Tensor h, Tensor w) { return tanh(matmul(h, w)); };
  auto step = [=](Tensor h, Tensor w) {
    Tensor next = recompute ? checkpoint(layer)(h, w) : layer(h, w);
    return std::pair(next, next);
  };
  auto [last, on_the_way] = scan(step, x, weights, {.reverse = reverse});
  return all ? Tensors{last, on_the_way} : Tensors{last};
}

Tensor sine(Tensor x) { return sin(x); }
Tensor cosine(Tensor x) { return cos(x); }
Tensor hyperbolic(Tensor x) { return tanh(x); }

}  // namespace

std::optional<Program> control_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  if (id.starts_with("while")) return single([](Inputs x) { return square_root(x[0]); });
  if (id.starts_with("fori")) return single([](Inputs x) { return five_steps(x[0], x[1]); });
  if (id.starts_with("cond"))
    return single([](Inputs x) {
      Tensor yes = x[0].dtype() == DType::bool_ ? x[0] : x[0] > 0;
      return cond(yes, sine, cosine, x[1]);
    });
  if (id.starts_with("switch"))
    return single([](Inputs x) { return switch_case(x[0], {sine, cosine, hyperbolic}, x[1]); });
  if (id.starts_with("scan") && test.at("inputs").size() == 2 &&
      test.at("inputs").at(1).at("shape").size() == 3) {
    bool reverse = mentions(id, "reverse") || mentions(what, "revers");
    bool recompute = mentions(id, "remat") || mentions(what, "remat");
    bool all = test.at("outputs").size() == 2;
    return [=](Inputs x) { return layers(x[0], x[1], reverse, recompute, all); };
  }
  return std::nullopt;
}

}  // namespace meshard::conformance
