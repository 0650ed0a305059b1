// A mark says where a value is, not what it is: values that are marked as unreduced.
#include <gmock/gmock.h>

#include <limits>

#include "meshard/explain/explain.h"
#include "meshard/runtime/sharded_tensor.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Unreduced = OnDevices;
using testing::ElementsAre;

Mesh two_by_two() { return Mesh({{"dp", 2}, {"tp", 2}}); }

std::vector<double> numbers_in(const Tensor& tensor) {
  return astype(tensor, DType::f64).to_vector<double>();
}

// The sum of the elements of all shards.
double sum_of_shards(const Tensor& tensor) {
  double total = 0;
  for (const LocalShard& shard : local_shards(tensor))
    total += numbers_in(sum(astype(from_host(shard.data()), DType::f64)))[0];
  return total;
}

TEST_F(Unreduced, EveryWayToMarkKeepsTheValue) {
  Mesh mesh = two_by_two();
  const std::pair<PartitionSpec, AxisList> ways[] = {
      {P("dp"), {"tp"}}, {P(none), {"tp"}}, {P(none), {"dp", "tp"}}, {P("tp"), {"dp"}}};
  for (DType dtype : {DType::f32, DType::i32, DType::bf16, DType::c64})
    for (std::int64_t size : {1, 4, 5})
      for (const auto& [spec, axes] : ways) {
        if (dtype == DType::c64 && size != 4) continue;
        const Sharding partial = Sharding(mesh, spec).with_unreduced(axes);
        SCOPED_TRACE(cat(dtype, "[", size, "] ", partial));
        Tensor x = from_host(astype(counting({size}, 1), dtype).to_host());
        Tensor placed = mark_sharding(x, mesh, spec);
        sync(placed);
        auto real_values = [](const Tensor& t) {
          return numbers_in(is_complex(t.dtype()) ? real(t) : t);
        };
        const std::vector<double> expected = real_values(x), next = real_values(x + 1);
        auto add_one = jit([&](Tensor t) { return sharding_constraint(t + 1, partial); });
        Tensor made = add_one(placed);
        EXPECT_EQ(real_values(mark_sharding(x, partial)), expected);
        EXPECT_EQ(real_values(mark_sharding(placed, partial)), expected);
        EXPECT_EQ(real_values(mark_sharding(placed + 1, partial)), next);
        EXPECT_EQ(real_values(made), next);
        ASSERT_TRUE(made.sharding());
        EXPECT_EQ(*made.sharding(), partial) << "a result that was asked for stays unreduced";
        EXPECT_EQ(real_values(made + 0), next);
        EXPECT_EQ(real_values(made * made), real_values((x + 1) * (x + 1)));
        EXPECT_EQ(real_values(add_one(made)), real_values(x + 2));
        EXPECT_EQ(real_values(jit([&](Tensor t) {
                    return mark_sharding(sharding_constraint(t * 1, partial) * 3, mesh, P());
                  })(x)),
                  real_values(x * 3));
        EXPECT_EQ(real_values(transfer(placed, partial)), expected);
        EXPECT_EQ(real_values(transfer(made, Sharding(Mesh({{"z", 2}}, {5, 6}), P("z")))), next);
        if (!is_complex(dtype)) {
          const double copies = static_cast<double>(Sharding(mesh, spec).num_replicas()) /
                                static_cast<double>(axes.size() == 2 ? 4 : 2);
          double total = 0;
          for (double each : next) total += each;
          EXPECT_EQ(sum_of_shards(made), total * copies);
        }
      }
}

TEST_F(Unreduced, PlacementsAndCallbacks) {
  Mesh mesh = two_by_two();
  Tensor x = counting({4});
  EXPECT_THAT(numbers_in(mark_sharding(x, mesh, Placements{Shard(0), Partial()})),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(numbers_in(mark_sharding(x, mesh, Placements{Partial(), Partial()})),
              ElementsAre(0, 1, 2, 3));
  Tensor made =
      ShardedTensor::from_callback(
          x.type(), Sharding(mesh, P("dp")).with_unreduced({"tp"}),
          [&](const Box& box) { return slice(x, {box[0].start}, {box[0].stop}).to_host(); })
          .global();
  EXPECT_THAT(numbers_in(made), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(numbers_in(mark_sharding(sum(x), Sharding(mesh, P()).with_unreduced({"tp"}))),
            std::vector<double>{6});
}

// The compiler would not report that the axes of what it places are unreduced.
TEST_F(Unreduced, WithOpenDimensions) {
  Mesh mesh = two_by_two();
  const Sharding row = Sharding(mesh, P("dp")).with_unreduced({"tp"});
  const Sharding open = Sharding(mesh, P(unconstrained, "dp")).with_unreduced({"tp"});
  Tensor x = counting({2, 4});
  Tensor mapped = vmap([&](Tensor t) { return mark_sharding(t, row); })(x);
  Tensor constrained = jit([&](Tensor t) { return sharding_constraint(t * 1, open); })(x);
  for (const Tensor& made : {mapped, constrained, mark_sharding(x, open)}) {
    EXPECT_THAT(numbers_in(made), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_EQ(sum_of_shards(made), 28);
    EXPECT_THAT(numbers_in(made + 1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  }
}

TEST_F(Unreduced, OddValuesAndAxes) {
  const float infinity = std::numeric_limits<float>::infinity();
  Mesh mesh({{"a", 4}, {"one", 1}});
  Tensor x = from_host(std::vector<float>{infinity, -infinity, 3, 0}, {4});
  const Sharding parts = Sharding(mesh, P(none)).with_unreduced({AxisRef("a", 1, 2)});
  const Sharding alone = Sharding(mesh, P("a")).with_unreduced({"one"});
  for (const Sharding& sharding : {parts, alone}) {
    EXPECT_THAT(numbers_in(jit([&](Tensor t) { return sharding_constraint(t * 1, sharding); })(x)),
                ElementsAre(infinity, -infinity, 3, 0))
        << sharding;
    EXPECT_THAT(numbers_in(mark_sharding(x, sharding)), ElementsAre(infinity, -infinity, 3, 0));
  }
  EXPECT_TRUE(throws_error([&] { mark_sharding(x > 0, parts); }, ErrorCode::kInvalidArgument,
                           {"unreduced_test.cc:", "bool", "unreduced"}));
}

// The devices have copies, whose maximum is the value.
TEST_F(Unreduced, MaximaAndMinima) {
  Mesh mesh = two_by_two();
  const float infinity = std::numeric_limits<float>::infinity();
  Tensor x = from_host(std::vector<float>{infinity, -infinity, -3, 0}, {4});
  for (UnreducedKind kind : {UnreducedKind::kMax, UnreducedKind::kMin})
    for (const Sharding& sharding : {Sharding(mesh, P("dp")).with_unreduced({"tp"}, kind),
                                     Sharding(mesh, P(none)).with_unreduced({"dp", "tp"}, kind)}) {
      SCOPED_TRACE(sharding.to_string());
      auto same = ElementsAre(infinity, -infinity, -3, 0);
      Tensor made = jit([&](Tensor t) { return sharding_constraint(t * 1, sharding); })(x);
      EXPECT_EQ(*made.sharding(), sharding);
      Tensor called = ShardedTensor::from_callback(x.type(), sharding, [&](const Box& box) {
                        return slice(x, {box[0].start}, {box[0].stop}).to_host();
                      }).global();
      for (const Tensor& each :
           {made, called, mark_sharding(x, sharding), mark_sharding(x * 1, sharding),
            transfer(made, sharding), mark_sharding(made, mesh, P("tp"))}) {
        EXPECT_THAT(numbers_in(each), same);
        EXPECT_THAT(numbers_in(each * 1), same);
        for (const LocalShard& shard : local_shards(each)) {
          const DimensionSlice part = shard.box()[0];
          EXPECT_EQ(shard.data().to_vector<float>(),
                    slice(x, {part.start}, {part.stop}).to_vector<float>());
        }
      }
      EXPECT_THAT(numbers_in(grad([&](Tensor t) { return sum(mark_sharding(t * t, sharding)); })(
                      from_host(std::vector<float>{1, 2, 3, 4}, {4}))),
                  ElementsAre(2, 4, 6, 8));
      EXPECT_THAT(mark_sharding(x > 0, sharding).to_vector<bool>(),
                  ElementsAre(true, false, false, false));
      EXPECT_TRUE(throws_error([&] { mark_sharding(complex(x, x), sharding); },
                               ErrorCode::kInvalidArgument,
                               {"unreduced_test.cc:", "has no order"}));
    }
}

// What the compiler leaves unsummed by itself is not summed and divided again.
TEST_F(Unreduced, ProductsStayUnsummed) {
  Mesh mesh = two_by_two();
  const Sharding partial = Sharding(mesh, P("dp")).with_unreduced({"tp"});
  Tensor a = mark_sharding(counting({4, 4}), mesh, P("dp", "tp"));
  Tensor b = mark_sharding(ones({4}), mesh, P("tp"));
  auto product =
      jit([&](Tensor p, Tensor q) { return sharding_constraint(matmul(p, q), partial); });
  Tensor made = product(a, b);
  EXPECT_THAT(numbers_in(made), ElementsAre(6, 22, 38, 54));
  EXPECT_EQ(local_shards(made)[0].data().to_vector<float>(), (std::vector<float>{1, 9}));
  EXPECT_TRUE(explain(product).collectives().empty());
  EXPECT_THAT(numbers_in(jit([&](Tensor p, Tensor q) {
                return sharding_constraint(matmul(p * 2, q), partial);
              })(a, b)),
              ElementsAre(12, 44, 76, 108));
  EXPECT_THAT(numbers_in(jit([&](Tensor p, Tensor q) {
                return sharding_constraint(matmul(p, q), partial);
              })(counting({4, 4}), ones({4}))),
              ElementsAre(6, 22, 38, 54));
}

TEST_F(Unreduced, LoopsBranchesAndGradients) {
  Mesh mesh = two_by_two();
  const Sharding partial = Sharding(mesh, P("dp")).with_unreduced({"tp"});
  Tensor x = counting({4}, 1);
  auto partly = [&](Tensor t) { return sharding_constraint(t * 2, partial); };
  auto f = jit([&](Tensor t) {
    return fori_loop(
        0, 2, [&](Tensor, Tensor c) { return cond(greater(sum(c), 0), partly, partly, c); }, t);
  });
  EXPECT_THAT(numbers_in(f(x)), ElementsAre(4, 8, 12, 16));
  EXPECT_THAT(numbers_in(f(mark_sharding(x, partial))), ElementsAre(4, 8, 12, 16));
  EXPECT_THAT(numbers_in(grad([&](Tensor t) { return sum(square(partly(t))); })(x)),
              ElementsAre(8, 16, 24, 32));
  EXPECT_THAT(numbers_in(grad([](Tensor t) { return sum(square(t)); })(mark_sharding(x, partial))),
              ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(numbers_in(vmap(partly)(stack({x, x}))), ElementsAre(2, 4, 6, 8, 2, 4, 6, 8));
}

}  // namespace
}  // namespace meshard
