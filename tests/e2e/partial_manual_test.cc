// Regions over some of the axes, and branches that only some of the devices take: values equal
// those without shardings. tests/partial_manual tries every op.
#include <gmock/gmock.h>

#include "meshard/meshard.h"
#include "tests/support/devices.h"

namespace meshard {
namespace {

using PartialManual = OnDevices;
using testing::ElementsAre;
using testing::ElementsAreArray;
using Function = std::function<Tensor(const Tensor&)>;

const Mesh& three_axes() {
  static const Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  return mesh;
}

// `f` of the rows that a device along "x" holds, split as `spec` says.
Function in_part(const Mesh& mesh, PartitionSpec spec, Function f) {
  return jit(
      manual(mesh, P("x"), P("x"),
             [=](const Tensor& x) { return f(sharding_constraint(x, Sharding(mesh, spec))); },
             {.axes = {"x"}}));
}

// The largest difference between `f` of the parts and of the whole.
float deviation_of(const Mesh& mesh, const PartitionSpec& spec, const Tensor& x,
                   const Function& f) {
  return max(abs(in_part(mesh, spec, f)(x) - f(x))).item<float>();
}

TEST_F(PartialManual, ConvolutionsAreAddedOnce) {
  auto run = [](const Mesh& mesh, const PartitionSpec& input, const PartitionSpec& kernel) {
    auto body = [&](const Tensor& x, const Tensor& k) {
      return conv1d(sharding_constraint(x, Sharding(mesh, input)),
                    sharding_constraint(k, Sharding(mesh, kernel)));
    };
    auto loss = [&](const Tensor& x, const Tensor& k) { return sum(body(x, k)); };
    auto both = [&](const Tensor& x, const Tensor& k) {
      return std::pair(body(x, k), grad([&](const Tensor& t) { return loss(x, t); })(k));
    };
    auto [y, slope] = jit(manual(mesh, {P("x"), P()}, {P("x"), P()}, both, {.axes = {"x"}}))(
        ones({4, 8, 4}), ones({3, 4, 6}));
    EXPECT_EQ(min(y).item<float>(), 12) << input << kernel;  // 3 taps x 4 features
    EXPECT_EQ(max(y).item<float>(), 12) << input << kernel;
    EXPECT_EQ(max(slope).item<float>(), 4 * 6) << input << kernel;  // 4 images x 6 places
  };
  run(three_axes(), P(none, "y", none), P(none, "y", none));
  run(three_axes(), P(none, none, "y"), P(none, "y", none));
  run(three_axes(), P(none, "z", "y"), P("y", none, "z"));
  run(grid(), P(none, AxisRef("y", 1, 2), none), P(none, AxisRef("y", 1, 2), none));
}

TEST_F(PartialManual, LookupsOfSplitTablesAndTokens) {
  Mesh mesh({{"stage", 2}, {"dp", 2}, {"tp", 2}});
  Tensor table = counting({16, 4}), tokens = reshape(arange(32) * 7 % 16, {2, 4, 4});
  Tensor expected = take(table, tokens, 0);
  for (const auto& [w, t] :
       {std::pair(P("tp", "dp"), P(none, "dp")), {P(none, "tp"), P(none, "dp", "tp")}}) {
    auto body = [&, w = w, t = t](const Tensor& rows, const Tensor& which) {
      Tensor split = sharding_constraint(rows, Sharding(mesh, w));
      Tensor places = sharding_constraint(which, Sharding(mesh, t));
      Tensor slope = grad([&](const Tensor& v) { return sum(take(v, places, 0)); })(split);
      return std::pair(take(split, places, 0), slope);
    };
    auto [found, slope] = jit(manual(mesh, {P(), P("stage")}, {P("stage"), P()}, body,
                                     {.axes = {"stage"}}))(table, tokens);
    EXPECT_EQ(found.to_vector<float>(), expected.to_vector<float>());
    EXPECT_EQ(slope.to_vector<float>(), std::vector<float>(64, 2));  // each row is taken twice
  }
}

TEST_F(PartialManual, TransformsOfSplitDimensions) {
  Tensor x = reshape(sin(arange(128.0)), {4, 8, 4});
  for (std::int64_t dimension : {1, 2})
    EXPECT_LT(deviation_of(grid(), dimension == 1 ? P(none, "y") : P(none, none, "y"), x,
                           [=](const Tensor& t) { return abs(fft(t, std::nullopt, dimension)); }),
              1e-4);
}

TEST_F(PartialManual, GradientsOfOverlappingWindows) {
  Tensor x = from_host(reshape(sin(arange(4.0 * 9 * 4) * 1.7), {4, 9, 4}).to_host());
  Function slope = grad([](const Tensor& v) {
    return sum(square(reduce_window_max(v, {1, 3, 2}, {.strides = {1, 2, 1}})));
  });
  EXPECT_LT(deviation_of(three_axes(), P(none, none, "y"), x, slope), 1e-5);
  EXPECT_LT(deviation_of(grid(), P(none, none, "y"), x, slope), 1e-5);
  EXPECT_LT(deviation_of(grid(), P(none, none, AxisRef("y", 1, 2)), x, slope), 1e-5);
  EXPECT_LT(
      deviation_of(three_axes(), P(none, none, axes("y", "z")), x,
                   [](const Tensor& v) { return cumulative_max(v, 2) + cumulative_sum(v, 1); }),
      1e-5);
}

// Without a region: indices and an indexed dimension of the operand are split.
TEST_F(PartialManual, ScattersWhoseIndexComponentsAreSplit) {
  Tensor table = counting({5, 6}), updates = counting({5});
  Tensor at = from_host<std::int32_t>({0, 4, 4, 0, 2, 3, 3, 2, 3, 1}, {5, 2});
  ScatterDimensions each{.inserted_window_dims = {0, 1},
                         .scatter_dims_to_operand_dims = {0, 1},
                         .index_vector_dim = 1};
  auto f = [&](const Tensor& t, const Tensor& i) { return scatter_add(t, i, updates, each); };
  std::vector<float> expected = f(table, at).to_vector<float>();
  for (const PartitionSpec& spec : {P("x"), P(none, "x"), P(none, "y")})
    EXPECT_EQ(jit(f)(mark_sharding(table, grid(), P("x")), mark_sharding(at, grid(), spec))
                  .to_vector<float>(),
              expected)
        << spec;
}

// `f` on the first row of [[0, ..., 7], [8, ..., 15]], where a device holds one, and the row
// negated on the other devices.
std::vector<float> first_row(const Mesh& mesh, const PartitionSpec& spec, const Function& f) {
  auto run = in_part(mesh, spec, [&](const Tensor& p) {
    return cond(
        equal(axis_index("x"), 0),
        [&](const Tensor& q) { return sharding_constraint(f(q), Sharding(mesh, spec)); },
        [](const Tensor& q) { return -q; }, p);
  });
  return run(counting({2, 8})).to_vector<float>();
}

TEST_F(PartialManual, BranchesThatShiftElements) {
  std::vector<float> other = numbers(8, -8, -1);
  auto with = [&](std::vector<float> row) {
    row.insert(row.end(), other.begin(), other.end());
    return row;
  };
  for (const auto& [mesh, spec] :
       {std::pair(grid(), P(none, "y")), {three_axes(), P(none, axes("z", "y"))}}) {
    EXPECT_EQ(first_row(mesh, spec, [](const Tensor& q) { return roll(q, 1, 1); }),
              with({7, 0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(first_row(mesh, spec, [](const Tensor& q) { return flip(q); }),
              with(numbers(8, 7, -1)));
    EXPECT_EQ(first_row(mesh, spec, [](const Tensor& q) { return cumulative_sum(q, 1); }),
              with({0, 1, 3, 6, 10, 15, 21, 28}));
  }
}

// All axes are manual; only the devices of one row shift.
TEST_F(PartialManual, RingsInBranchesAndLoops) {
  auto shifted = [](auto around) {
    return jit(manual(grid(), P("x", "y"), P("x", "y"), around))(counting({2, 4}))
        .template to_vector<float>();
  };
  auto shift = [](const Tensor& t) { return ring_shift(t, "y"); };
  EXPECT_THAT(shifted([&](const Tensor& p) {
                return cond(
                    equal(axis_index("x"), 0), shift, [](const Tensor& t) { return -t; }, p);
              }),
              ElementsAre(3, 0, 1, 2, -4, -5, -6, -7));
  EXPECT_THAT(shifted([&](const Tensor& p) {
                return switch_case(axis_index("x"),
                                   {[](const Tensor& t) { return t * 2; }, shift,
                                    [](const Tensor& t) { return t * 0; }},
                                   p);
              }),
              ElementsAre(0, 2, 4, 6, 7, 4, 5, 6));
  // One turn in the first row, three in the second.
  EXPECT_THAT(shifted([&](const Tensor& p) {
                Tensor end = 2 * axis_index("x") + 1;
                return while_loop(
                           [end](const std::pair<Tensor, Tensor>& c) { return less(c.first, end); },
                           [&](const std::pair<Tensor, Tensor>& c) {
                             return std::pair(c.first + 1, shift(c.second));
                           },
                           std::pair(end * 0, p))
                    .second;
              }),
              ElementsAre(3, 0, 1, 2, 5, 6, 7, 4));
}

// A loop of a branch would never end on the devices that do not take the branch.
TEST_F(PartialManual, LoopsOfBranchesThatAreNotTaken) {
  auto halve = [](const Tensor& t) {
    return while_loop(
        [](const Tensor& c) { return not_equal(all_reduce(max(c), "y", ReduceKind::kMax), 1); },
        [](const Tensor& c) { return ring_shift(floor_divide(c, 2), "y"); }, t);
  };
  auto f = manual(grid(), P("x"), P("x"), [&](const Tensor& p) {
    Tensor own = vary(p, "y");
    Tensor result = cond(
        greater(max(p), 0), halve, [](const Tensor& t) { return t; }, own);
    return all_reduce(result, "y", ReduceKind::kMax);
  });
  EXPECT_THAT(jit(f)(from_host<float>({8, 0}, {2})).to_vector<float>(), ElementsAre(1, 0));
}

TEST_F(PartialManual, GradientsThroughBranchesThatShift) {
  auto f = [](const Tensor& x) {
    return sum(square(manual(grid(), P("x"), P("x"),
                             [](const Tensor& p) {
                               Tensor split =
                                   sharding_constraint(p, Sharding(grid(), P(none, "y")));
                               return cond(
                                   equal(axis_index("x"), 0),
                                   [](const Tensor& q) { return roll(q, 1, 1) * 3; },
                                   [](const Tensor& q) { return q * q; }, split);
                             },
                             {.axes = {"x"}})(x)));
  };
  std::vector<float> expected;
  for (float v = 0; v < 8; ++v) expected.push_back(18 * v);
  for (float v = 8; v < 16; ++v) expected.push_back(4 * v * v * v);
  EXPECT_THAT(jit(grad(f))(counting({2, 8})).to_vector<float>(), ElementsAreArray(expected));
}

}  // namespace
}  // namespace meshard
