// Explicit axes on real devices: placements and communication match what the types specify.
#include <gmock/gmock.h>

#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using ExplicitAxes = OnDevices;
using testing::FloatNear;
using testing::Pointwise;

Mesh explicit_mesh() {
  return Mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4, AxisKind::kExplicit}});
}

Tensor two_layers(Tensor x, Tensor up, Tensor down, std::optional<Sharding> result) {
  return matmul(tanh(matmul(x, up)), down, result);
}

struct Operands {
  Tensor x = counting({8, 16}, -64) / 64;
  Tensor up = counting({16, 32}, -256) / 256;
  Tensor down = counting({32, 16}, -256) / 256;
};

Operands placed(const Operands& host, const Mesh& mesh) {
  return {mark_sharding(host.x, mesh, P("data", none)),
          mark_sharding(host.up, mesh, P(none, "model")),
          mark_sharding(host.down, mesh, P("model", none))};
}

std::vector<float> values(const Tensor& tensor) { return tensor.to_vector<float>(); }

TEST_F(ExplicitAxes, AProgramGivesTheShardingsThatItSaid) {
  Mesh mesh = explicit_mesh();
  Operands host, p = placed(host, mesh);
  Sharding rows(mesh, P("data", none));
  auto f = jit([&](Tensor x, Tensor up, Tensor down) {
    Tensor hidden = tanh(matmul(x, up));
    EXPECT_EQ(hidden.sharding(), Sharding(mesh, P("data", "model"))) << "known while it is traced";
    return std::pair(hidden, matmul(hidden, down, rows));
  });
  auto [hidden, out] = f(p.x, p.up, p.down);
  EXPECT_EQ(device_array(hidden).sharding()->spec(), P("data", "model"));
  EXPECT_EQ(device_array(out).sharding()->spec(), P("data", none));
  EXPECT_THAT(values(out), Pointwise(FloatNear(1e-4f),
                                     values(two_layers(host.x, host.up, host.down, std::nullopt))));
}

TEST_F(ExplicitAxes, CostsWhatTheTypesSay) {
  Mesh mesh = explicit_mesh();
  Operands p = placed({}, mesh);
  auto f = jit([&](Tensor x, Tensor up, Tensor down) {
    return two_layers(x, up, down, Sharding(mesh, P("data", none)));
  });
  f(p.x, p.up, p.down);
  ProgramReport report = explain(f);
  EXPECT_EQ(report.collectives().size(), 1u) << report.to_string();
  EXPECT_EQ(report.collectives(CollectiveKind::kAllReduce, {"model"}).size(), 1u)
      << report.to_string();
}

TEST_F(ExplicitAxes, LazyValuesKnowTheirShardingBeforeTheyAreComputed) {
  Operands host, p = placed(host, explicit_mesh());
  Tensor y = tanh(matmul(p.x, p.up));
  EXPECT_EQ(y.sharding(), Sharding(explicit_mesh(), P("data", "model")));
  EXPECT_EQ(y.placement(), "recorded");
  EXPECT_EQ(device_array(y).sharding()->spec(), P("data", "model"));
  EXPECT_THAT(values(y), Pointwise(FloatNear(1e-5f), values(tanh(matmul(host.x, host.up)))));
}

TEST_F(ExplicitAxes, ACarryThatNobodyMarkedIsWhole) {
  Mesh mesh({{"x", 2, AxisKind::kExplicit}});
  Tensor whole = mark_sharding(counting({4}), mesh, P(none));
  Tensor split = mark_sharding(counting({4}), mesh, P("x"));
  auto total = [](const Tensor& start, const Tensor& each) {
    return repeat(3, start, [&](Tensor sum) { return sum + each; });
  };
  Tensor zero = from_host<float>({0, 0, 0, 0}, {4});
  EXPECT_EQ(values(total(zero, whole)), (std::vector<float>{0, 3, 6, 9}));
  auto loss = [&](Tensor start) { return sum(square(total(start, whole))); };
  EXPECT_EQ(values(grad(loss)(zero)), (std::vector<float>{0, 6, 12, 18}));
  EXPECT_TRUE(
      throws_error([&] { total(zero, split); }, ErrorCode::kInvalidArgument,
                   {"explicit_axes_test.cc", "enters the body", "the body returns it", "\"x\""}));
}

// Unmarked values, and their cotangents, are treated as replicated.
TEST_F(ExplicitAxes, GradientsOfUnmarkedValues) {
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"y", 4, AxisKind::kAuto}});
  Tensor plain = sin(counting({6, 4})), rows = cos(counting({4, 6}));
  Tensor split = mark_sharding(rows, mesh, P("x", none));
  auto check = [&](auto f) {
    auto gradient = [&](const Tensor& w) { return grad([&, w](Tensor t) { return f(t, w); }); };
    std::vector<float> expected = values(gradient(rows)(plain));
    EXPECT_THAT(values(gradient(split)(plain)), Pointwise(FloatNear(1e-4f), expected));
    EXPECT_THAT(values(jit(gradient(split))(plain)), Pointwise(FloatNear(1e-4f), expected));
  };
  // In the backward pass, both operands of a product are split along the contracting dimension.
  check([](const Tensor& t, const Tensor& w) { return sum(square(matmul(w, t))); });
  // A pad along the split dimension.
  check([](const Tensor& t, const Tensor& w) {
    Tensor part = slice(reshape(t, {8, 3}), {2, 0}, {6, 3}, {1, 1});
    return sum(square(part * slice(w, {0, 0}, {4, 3}, {1, 1})));
  });
  // One branch has residuals that the others do not have.
  check([](const Tensor& t, const Tensor& w) {
    Tensor which = from_host<std::int32_t>({1}, {});
    auto same = [](Tensor x) { return x; };
    auto bent = [](Tensor x) { return tanh(x); };
    return sum(square(switch_case(which, std::tuple(same, bent, same), w * reshape(t, {4, 6}))));
  });
}

TEST_F(ExplicitAxes, GradientsLieAsTheirPrimals) {
  Mesh mesh = explicit_mesh();
  Operands host, p = placed(host, mesh);
  auto loss = [&](std::optional<Sharding> result) {
    return [result](Tensor x, Tensor up, Tensor down) {
      return mean(square(two_layers(x, up, down, result)));
    };
  };
  auto [value, gradients] =
      jit(value_and_grad<0, 1, 2>(loss(Sharding(mesh, P("data", none)))))(p.x, p.up, p.down);
  auto [expected, plain] = value_and_grad<0, 1, 2>(loss(std::nullopt))(host.x, host.up, host.down);
  EXPECT_NEAR(value.item<float>(), expected.item<float>(), 1e-4f);
  auto same = [](const Tensor& got, const Tensor& primal, const Tensor& wanted) {
    EXPECT_EQ(got.sharding(), primal.sharding());
    EXPECT_THAT(values(got), Pointwise(FloatNear(1e-4f), values(wanted)));
  };
  same(std::get<0>(gradients), p.x, std::get<0>(plain));
  same(std::get<1>(gradients), p.up, std::get<1>(plain));
  same(std::get<2>(gradients), p.down, std::get<2>(plain));
}

TEST_F(ExplicitAxes, AmbiguityIsAnErrorAtTheCall) {
  Operands p = placed({}, explicit_mesh());
  Tensor hidden = tanh(matmul(p.x, p.up));
  EXPECT_TRUE(throws_error(
      [&] { matmul(hidden, p.down); }, ErrorCode::kInvalidArgument,
      {"[dot_general]", "explicit_axes_test.cc:", "the sharding of the result is ambiguous",
       "{\"model\"} splits dimension 1 of operand 0", "{\"model\"} splits dimension 0 of operand 1",
       "P(\"data\", \"model\")", "P(\"model\", none)", "mark_sharding"}));
}

TEST_F(ExplicitAxes, AReshardIsAMark) {
  Operands host, p = placed(host, explicit_mesh());
  Tensor whole = mark_sharding(tanh(p.x), explicit_mesh(), P(none, "model"));
  EXPECT_EQ(whole.sharding(), Sharding(explicit_mesh(), P(none, "model")));
  EXPECT_EQ(device_array(whole).sharding()->spec(), P(none, "model"));
  EXPECT_THAT(values(whole), Pointwise(FloatNear(1e-5f), values(tanh(host.x))));
}

TEST_F(ExplicitAxes, UnevenSizesKeepTheirSharding) {
  Mesh mesh = explicit_mesh();
  Tensor host = counting({7, 6}, -20) / 8;
  Tensor x = mark_sharding(host, mesh, P("data", "model"));
  Tensor y = jit([](Tensor t) { return exp(t) + 1; })(x);
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_THAT(values(y), Pointwise(FloatNear(1e-3f), values(exp(host) + 1)));
}

// "data" is explicit; the compiler decides about "model".
TEST_F(ExplicitAxes, AutoAxesBesideThemStayWithTheCompiler) {
  Mesh mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4}});
  Operands host, p = placed(host, mesh);
  Tensor y = jit([](Tensor x, Tensor up) { return tanh(matmul(x, up)); })(p.x, p.up);
  ASSERT_TRUE(y.sharding());
  EXPECT_EQ(y.sharding()->axes(0), AxisList{"data"});
  EXPECT_THAT(values(y), Pointwise(FloatNear(1e-5f), values(tanh(matmul(host.x, host.up)))));
  Tensor rows = mark_sharding(tanh(matmul(p.x, p.up)), mesh, P(none, "data"));
  EXPECT_THAT(values(rows), Pointwise(FloatNear(1e-5f), values(tanh(matmul(host.x, host.up)))));
}

TEST_F(ExplicitAxes, AxesOfSizeOneStayWhenAValueIsComputed) {
  Mesh mesh({{"x", 1, AxisKind::kExplicit}, {"y", 2}});
  Tensor recorded = exp(mark_sharding(counting({2}, 0), mesh, P("x")));
  Tensor computed = exp(mark_sharding(counting({2}, 0), mesh, P("x")));
  sync(computed);
  EXPECT_EQ(computed.sharding()->axes(0)[0], AxisRef("x"));
  for (const Tensor& like : {recorded, computed}) {
    Tensor last = fori_loop(
        0, 2, [&](Tensor, Tensor) { return exp(recorded) * 0.5f; }, like);
    EXPECT_THAT(values(last), Pointwise(FloatNear(1e-5f), values(exp(recorded) * 0.5f)));
  }
}

// Shardings that differ only in axes of size 1 are the same placement, wherever two values meet.
TEST_F(ExplicitAxes, AnAxisOfSizeOneChangesNothing) {
  const AxisKind typed = AxisKind::kExplicit;
  Mesh mesh({{"data", 1, typed}, {"tensor", 4, typed}, {"unit", 1, typed}});
  const PartitionSpec specs[] = {P(none, "tensor"), P("data", "tensor"),
                                 P("unit", {"tensor", "data"}), P(none, {"data", "tensor"})};
  struct Case {
    const char* name;
    Tensor (*of)(const Tensor&, const Tensor&);
  };
  const Case cases[] = {
      {"add", [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"concat",
       [](const Tensor& a, const Tensor& b) {
         return concat({a, b}, 0);
       }},
      {"where", [](const Tensor& a, const Tensor& b) { return where(greater(a, 3), a, b * 2); }},
      {"update",
       [](const Tensor& a, const Tensor& b) {
         return dynamic_update_slice(a, b * 2, {0, 0});
       }},
      {"stack",
       [](const Tensor& a, const Tensor& b) {
         return stack({a, b});
       }},
      {"carry",
       [](const Tensor& a, const Tensor& b) {
         return fori_loop(
             0, 2, [&](Tensor, Tensor) { return b * 2; }, a);
       }},
      {"branches",
       [](const Tensor& a, const Tensor& b) {
         return cond(
             greater(sum(a), 1000), [](Tensor x, Tensor) { return x; },
             [](Tensor, Tensor y) { return y * 2; }, a, b);
       }},
      {"gradient",
       [](const Tensor& a, const Tensor& b) {
         return grad([&](Tensor x) { return sum(concat({x, b}, 0) * concat({b, x}, 0)); })(a);
       }},
  };
  Tensor host = counting({4, 8}, 0);
  for (const auto& [name, of] : cases)
    for (const PartitionSpec& p : specs)
      for (const PartitionSpec& q : specs)
        EXPECT_EQ(values(of(mark_sharding(host, mesh, p), mark_sharding(host, mesh, q))),
                  values(of(host, host)))
            << name << " of " << p << " and " << q;
}

// XLA uses the sharding at the end of one branch for all branches.
TEST_F(ExplicitAxes, ABranchMayEndWithAMarkOfTheCompilersAxes) {
  Mesh mesh({{"data", 2}, {"model", 4, AxisKind::kExplicit}});
  Tensor x = mark_sharding(counting({4}, -2), mesh, P("model")), y = counting({4}, 1);
  for (int which : {0, 1}) {
    Tensor result = jit([&](Tensor index) {
      return cond(
          equal(index, 0), [&](Tensor t) { return t + reshape(sum(x), {1}); },
          [&](Tensor t) { return mark_sharding(t * 2, mesh, P("data")); }, y);
    })(from_host<std::int32_t>({which}, {}));
    std::vector<float> expected = which == 0 ? values(y + sum(counting({4}, -2))) : values(y * 2);
    EXPECT_THAT(values(result), Pointwise(FloatNear(1e-5f), expected)) << which;
  }
}

}  // namespace
}  // namespace meshard
