// Batched functions on real devices, with grad, jit, meshes, random numbers and user-defined
// derivatives.
#include "meshard/ops/batching/vmap.h"

#include <gmock/gmock.h>

#include "tests/support/devices.h"

namespace meshard {
namespace {

using Batched = OnDevices;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

Tensor loss_of(const Tensor& w, const Tensor& x) { return mean(square(tanh(matmul(x, w)))); }

Tensor weights() { return counting({3, 2}, -3) / 8; }
Tensor examples() { return counting({4, 3}, -6) / 8; }

TEST_F(Batched, GradientsOfEveryExampleAreThoseOfEachAlone) {
  auto each = vmap(grad(loss_of), {.in_axes = {none, 0}});
  Tensor lazily = each(weights(), examples()), jitted = jit(each)(weights(), examples());
  EXPECT_EQ(lazily.shape(), Shape({4, 3, 2}));
  std::vector<float> alone;
  for (std::int64_t i = 0; i < 4; ++i)
    for (float v : grad(loss_of)(weights(), index(examples(), {i})).to_vector<float>())
      alone.push_back(v);
  EXPECT_THAT(lazily.to_vector<float>(), Pointwise(FloatNear(1e-6f), alone));
  EXPECT_THAT(jitted.to_vector<float>(), Pointwise(FloatNear(1e-6f), alone));
}

TEST_F(Batched, TheGradientOfABatchIsTheSumOfItsMembers) {
  auto total = [](const Tensor& w, const Tensor& x) {
    return sum(vmap(loss_of, {.in_axes = {none, 0}})(w, x));
  };
  Tensor each = vmap(grad(loss_of), {.in_axes = {none, 0}})(weights(), examples());
  EXPECT_THAT(jit(grad(total))(weights(), examples()).to_vector<float>(),
              Pointwise(FloatNear(1e-6f), sum(each, 0).to_vector<float>()));
}

// The Hessian of a quartic, row by row, is 12 x^2 on the diagonal.
TEST_F(Batched, DerivativesNest) {
  auto f = [](const Tensor& x) { return sum(square(square(x))); };
  Tensor x = counting({3}, 1);
  auto row = [&](const Tensor& direction) {
    return grad([&](const Tensor& at) { return sum(grad(f)(at) * direction); })(x);
  };
  Tensor hessian = vmap(row)(eye(3));
  EXPECT_THAT(hessian.to_vector<float>(), ElementsAre(12, 0, 0, 0, 48, 0, 0, 0, 108));
}

TEST_F(Batched, ADerivativeOfTheUsersIsKept) {
  auto clipped = custom_vjp([](Tensor x) { return std::pair(x * 1, x); },
                            [](Tensor x, Tensor g) { return clip(g, -1, 1) * x; });
  auto loss = [&](const Tensor& x, const Tensor& scale) { return sum(clipped(x) * scale); };
  Tensor x = counting({2, 2}, 1), scale = from_host(std::vector<float>{5, 0.5f}, {2});
  EXPECT_THAT(vmap(grad(loss))(x, scale).to_vector<float>(), ElementsAre(1, 2, 1.5f, 2));
  auto total = [&](const Tensor& all) { return sum(vmap(loss)(all, scale)); };
  EXPECT_THAT(grad(total)(x).to_vector<float>(), ElementsAre(1, 2, 1.5f, 2))
      << "the clipped cotangents are those of each member";
}

TEST_F(Batched, RandomNumbersAreThoseOfEachKey) {
  std::vector<Tensor> keys = random::split(random::key(7), 3);
  auto draw = [](const Tensor& key) {
    Tensor next = random::fold_in(key, 5);
    return std::tuple(random::bits(next, {5}), random::normal(random::split(key)[1], {2, 3}));
  };
  auto [bits, normal] = vmap(draw)(stack(keys));
  for (std::size_t i = 0; i < 3; ++i) {
    auto [own_bits, own_normal] = draw(keys[i]);
    auto row = static_cast<std::int64_t>(i);
    EXPECT_EQ(index(bits, {row}).to_host(), own_bits.to_host());
    EXPECT_EQ(index(normal, {row}).to_host(), own_normal.to_host());
  }
}

TEST_F(Batched, MembersBeginWhereTheirOwnIndexSays) {
  Tensor cache = counting({2, 4, 2}), update = full({2, 1, 2}, -1.0);
  Tensor at = from_host(std::vector<std::int32_t>{3, 9}, {2});
  auto f = [](const Tensor& x, const Tensor& u, const Tensor& t) {
    Tensor written = dynamic_update_slice(x, u, {t, 0});
    return std::tuple(written, dynamic_slice(x, {t - 2, 1}, {2, 1}));
  };
  auto [written, read] = vmap(f)(cache, update, at);
  EXPECT_THAT(written.to_vector<float>(),
              ElementsAre(0, 1, 2, 3, 4, 5, -1, -1, 8, 9, 10, 11, 12, 13, -1, -1))
      << "9 is moved inside";
  EXPECT_THAT(read.to_vector<float>(), ElementsAre(3, 5, 13, 15));
}

TEST_F(Batched, ABatchOverOneAxisIsDataParallel) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto f = [&](const Tensor& w, const Tensor& x) {
    return sharding_constraint(tanh(matmul(x, w)), Sharding(mesh, P("model")));
  };
  auto step = jit(vmap(f, {.in_axes = {none, 0}, .mesh_axis = "data"}));
  Tensor w = mark_sharding(counting({8, 8}) / 64, mesh, P(none, "model"));
  Tensor x = mark_sharding(counting({4, 8}) / 32, mesh, P("data", none));
  Tensor y = step(w, x);
  EXPECT_EQ(y.sharding()->spec(), P("data", "model"));
  EXPECT_THAT(
      y.to_vector<float>(),
      Pointwise(FloatNear(1e-6f),
                tanh(matmul(counting({4, 8}) / 32, counting({8, 8}) / 64)).to_vector<float>()));
}

TEST_F(Batched, ManualFunctionsHoldTheirPartOfEveryMember) {
  Mesh mesh({{"x", 4}});
  auto total = manual(mesh, P("x"), P(), [](const Tensor& part) {
    EXPECT_EQ(part.shape(), Shape({2}));
    return all_reduce(sum(part), "x");
  });
  EXPECT_THAT(vmap(total)(counting({3, 8})).to_vector<float>(), ElementsAre(28, 92, 156));
  auto inside = manual(mesh, P("x"), P("x"), [](const Tensor& part) {
    return vmap([](const Tensor& row) { return row * sum(row); })(part);
  });
  EXPECT_THAT(inside(counting({4, 2})).to_vector<float>(),
              ElementsAre(0, 1, 10, 15, 36, 45, 78, 91));
}

TEST_F(Batched, ExplicitAxesStayPartOfTheValues) {
  Mesh mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4, AxisKind::kExplicit}});
  Tensor host_w = counting({8, 8}) / 64, host_x = counting({4, 8}) / 32;
  Tensor w = mark_sharding(host_w, mesh, P(none, "model"));
  Tensor x = mark_sharding(host_x, mesh, P("data", none));
  auto f = [&](const Tensor& row) {
    Tensor hidden = tanh(matmul(row, w));
    EXPECT_EQ(hidden.sharding(), Sharding(mesh, P("model")));
    return sharding_constraint(hidden * 2 + 1, Sharding(mesh, P("model")));
  };
  Tensor y = jit(vmap(f))(x);
  EXPECT_EQ(y.sharding(), Sharding(mesh, P("data", "model")));
  EXPECT_THAT(
      y.to_vector<float>(),
      Pointwise(FloatNear(1e-6f), (tanh(matmul(host_x, host_w)) * 2 + 1).to_vector<float>()));
}

TEST_F(Batched, ALoopRunsUntilEveryMemberIsDone) {
  auto doubled = [](const Tensor& x, const Tensor& limit) {
    return while_loop([limit](Tensor c) { return less(c, limit); }, [](Tensor c) { return c + c; },
                      x);
  };
  Tensor x = from_host(std::vector<float>{1, 30, 200}, {3});
  EXPECT_THAT(vmap(doubled, {.in_axes = {0, none}})(x, full({}, 100.0)).to_vector<float>(),
              ElementsAre(128, 120, 200));
  Tensor limits = from_host(std::vector<float>{0, 5, 100}, {3});
  EXPECT_THAT(vmap(doubled, {.in_axes = {none, 0}})(full({}, 1.0), limits).to_vector<float>(),
              ElementsAre(1, 8, 128));
}

TEST_F(Batched, MembersTakeTheirOwnBranches) {
  auto f = [](const Tensor& i, const Tensor& x) {
    return switch_case(i,
                       {[](Tensor t) { return t; }, [](Tensor t) { return t * 10; },
                        [](Tensor t) { return t * 100; }},
                       x);
  };
  Tensor own = from_host(std::vector<std::int32_t>{2, 0, 9}, {3}), x = counting({3}, 1);
  EXPECT_THAT(vmap(f)(own, x).to_vector<float>(), ElementsAre(100, 2, 300));
  EXPECT_THAT(vmap(f, {.in_axes = {none, 0}})(full({}, 1, DType::i32), x).to_vector<float>(),
              ElementsAre(10, 20, 30));
}

// A carry that is initially the same for all members, and differs only from the second step on.
TEST_F(Batched, CarriesDifferOnceTheirStepsDo) {
  auto f = [](const Tensor& x) {
    auto [last, ys] = scan(
        [x](std::pair<Tensor, Tensor> carry, std::tuple<>) {
          return std::pair(std::pair(carry.second * 1, carry.second + x), carry.first);
        },
        std::pair(zeros({}), zeros({})), std::tuple<>(), {.length = 3});
    return std::tuple(last.first, last.second, ys);
  };
  auto [first, second, ys] = vmap(f)(counting({2}, 1));
  EXPECT_THAT(first.to_vector<float>(), ElementsAre(2, 4));
  EXPECT_THAT(second.to_vector<float>(), ElementsAre(3, 6));
  EXPECT_THAT(ys.to_vector<float>(), ElementsAre(0, 0, 1, 0, 0, 2));
}

TEST_F(Batched, LoopsAndDerivativesGoTogether) {
  // x^8 by three squarings; the gradient is 8 x^7.
  auto power = [](const Tensor& x) {
    return scan([](Tensor c, std::tuple<>) { return std::pair(square(c), std::tuple<>()); }, x,
                std::tuple<>(), {.length = 3})
        .first;
  };
  Tensor x = from_host(std::vector<float>{1, 2, -1}, {3});
  EXPECT_THAT(jit(vmap(grad(power)))(x).to_vector<float>(), ElementsAre(8, 1024, -8));
  auto total = [&](const Tensor& all) { return sum(vmap(checkpoint(power))(all)); };
  EXPECT_THAT(jit(grad(total))(x).to_vector<float>(), ElementsAre(8, 1024, -8));
  auto [values, gradients] = jit(vmap(value_and_grad(power)))(x);
  EXPECT_THAT(values.to_vector<float>(), ElementsAre(1, 256, 1));
  EXPECT_THAT(gradients.to_vector<float>(), ElementsAre(8, 1024, -8));
}

}  // namespace
}  // namespace meshard
