// Random numbers on meshes: the same on every mesh, where each device generates its own part; and
// draws that need sorting.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/devices.h"

namespace meshard {
namespace {

using testing::ElementsAre;

using RandomOnMeshes = OnDevices;

struct Draw {
  const char* name;
  Tensor (*call)(In key, Shape shape);
  // Logarithms and similar functions round differently where the compiler vectorizes them, which
  // depends on the shape of a shard.
  bool same_bits;
};

const Draw kDraws[] = {
    {"bits", [](In key, Shape shape) { return random::bits(key, shape, DType::u64); }, true},
    {"uniform", [](In key, Shape shape) { return random::uniform(key, shape); }, true},
    {"randint", [](In key, Shape shape) { return random::randint(key, shape, -7, 1000); }, true},
    {"bernoulli", [](In key, Shape shape) { return random::bernoulli(key, 0.25, shape); }, true},
    {"normal", [](In key, Shape shape) { return random::normal(key, shape); }, false},
    {"truncated_normal",
     [](In key, Shape shape) { return random::truncated_normal(key, -1, 2, shape); }, false},
    {"laplace", [](In key, Shape shape) { return random::laplace(key, shape); }, false}};

void expect_same(const HostArray& got, const HostArray& expected, const Draw& draw) {
  if (draw.same_bits) {
    EXPECT_TRUE(got.same_bits(expected));
    return;
  }
  for (std::int64_t i = 0; i < got.size(); ++i) {
    float value = expected.data<float>()[static_cast<std::size_t>(i)];
    EXPECT_NEAR(got.data<float>()[static_cast<std::size_t>(i)], value,
                1e-6 * (1 + std::abs(value)));
  }
}

TEST_F(RandomOnMeshes, EveryMeshGivesTheSameWithoutTalking) {
  Mesh grid({{"x", 2}, {"y", 4}}), permuted({{"x", 2}, {"y", 4}}, {5, 2, 7, 0, 3, 6, 1, 4}),
      part({{"x", 2}, {"y", 2}}, {6, 1, 3, 4});
  for (const Draw& draw : kDraws) {
    HostArray expected = draw.call(random::key(11), {8, 12}).to_host();
    for (const Mesh& mesh : {grid, permuted, part})
      for (const PartitionSpec& spec : {P("x", "y"), P(none, axes("y", "x"))}) {
        Sharding sharding(mesh, spec, 2);
        SCOPED_TRACE(cat(draw.name, " over ", sharding.to_string()));
        auto make = jit([&](Tensor key) {
          return mark_sharding(draw.call(key, {8, 12}), sharding);
        });
        Tensor made = make(mark_sharding(random::key(11), mesh, P(none)));
        expect_same(made.to_host(), expected, draw);
        EXPECT_TRUE(explain(make).collectives().empty());
      }
  }
}

// (high words * 2^64 + low words) % span, computed in 128 bits. (This is JAX's algorithm, which
// computes exactly this for spans below 2^32.)
// Devices make only the elements that are kept: every 2^27th.
TEST_F(RandomOnMeshes, MoreElementsThanFit32Bits) {
  const std::int64_t step = std::int64_t{1} << 27, size = 64 * step;
  auto kept = [&](Tensor (*make)(const Tensor&, std::int64_t), std::optional<Sharding> sharding) {
    auto f = jit([=](const Tensor& key) {
      Tensor all = make(key, size);
      if (sharding) all = mark_sharding(all, *sharding);
      return slice(all, {0}, {size}, {step});
    });
    return f(random::key(1)).to_host();
  };
  const Sharding split(Mesh({{"x", 8}}), P("x")),
      half(Mesh({{"y", 2}, {"z", 2}}, {5, 2, 7, 0}), P("z"));
  auto counted = [](const Tensor&, std::int64_t n) { return iota(DType::i64, {n}, 0); };
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < size; i += step) places.push_back(i);
  EXPECT_EQ(kept(counted, split).to_vector<std::int64_t>(), places);
  EXPECT_EQ(kept(counted, half).to_vector<std::int64_t>(), places);
  EXPECT_TRUE(kept([](const Tensor&, std::int64_t n) { return iota(DType::f32, {n}, 0); }, split)
                  .same_bits(HostArray::from_vector(places).astype(DType::f32)));
  auto uniform = [](const Tensor& key, std::int64_t n) { return random::uniform(key, {n}); };
  EXPECT_TRUE(kept(uniform, split).same_bits(kept(uniform, std::nullopt)));
}

TEST_F(RandomOnMeshes, Randint64UsesTwiceTheBits) {
  constexpr std::int64_t kLow = -3, kHigh = 4'000'000'007;
  Tensor key = random::key(9);
  std::vector<Tensor> keys = random::split(key);
  auto words = [&](std::size_t i) {
    return random::bits(keys[i], {50}, DType::u64).to_vector<std::uint64_t>();
  };
  std::vector<std::uint64_t> high = words(0), low = words(1);
  auto got = random::randint(key, {50}, kLow, kHigh, DType::i64).to_vector<std::int64_t>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    auto both = static_cast<unsigned __int128>(high[i]) << 64 | low[i];
    EXPECT_EQ(got[i], kLow + static_cast<std::int64_t>(both % (kHigh - kLow))) << i;
  }
}

TEST_F(RandomOnMeshes, PermutationsHaveEverythingOnce) {
  for (std::int64_t size : {1, 2, 9, 100, 3000}) {
    std::vector<std::int32_t> order =
        random::permutation(random::key(3), size).to_vector<std::int32_t>();
    std::sort(order.begin(), order.end());
    for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  // Whole rows are permuted.
  HostArray rows = random::permutation(random::key(3), counting({9, 2})).to_host();
  for (std::int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(rows.at<float>({i, 1}), rows.at<float>({i, 0}) + 1);
  EXPECT_NE(rows, counting({9, 2}).to_host());
}

TEST_F(RandomOnMeshes, ShufflingMovesElementsInsideTheirVectors) {
  HostArray columns = random::shuffle(random::key(3), counting({50, 2})).to_host();
  std::multiset<float> even, odd;
  bool apart = false;
  for (std::int64_t i = 0; i < 50; ++i) {
    even.insert(columns.at<float>({i, 0}));
    odd.insert(columns.at<float>({i, 1}));
    apart = apart || columns.at<float>({i, 1}) != columns.at<float>({i, 0}) + 1;
  }
  EXPECT_TRUE(apart) << "both columns in one order";
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(even.count(static_cast<float>(2 * i)), 1u);
    EXPECT_EQ(odd.count(static_cast<float>(2 * i + 1)), 1u);
  }
}

TEST_F(RandomOnMeshes, DrawsFollowTheirProbabilities) {
  std::vector<float> p{0.1f, 0.2f, 0.7f};
  Tensor weights = from_host(p, {3});
  auto shares = [](const Tensor& draws) {
    std::vector<double> counts(3);
    for (std::int32_t index : draws.to_vector<std::int32_t>())
      counts.at(static_cast<std::size_t>(index)) += 1 / 4000.0;
    return counts;
  };
  for (const Tensor& draws :
       {random::categorical(random::key(5), log(weights), -1, Shape{4000}),
        random::choice(random::key(5), 3, {4000}, {.probabilities = weights})}) {
    std::vector<double> got = shares(draws);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], p[i], 0.03) << i;
  }
}

TEST_F(RandomOnMeshes, DrawsWithoutReplacementDiffer) {
  Tensor logits = from_host(std::vector<float>(20), {2, 10});
  HostArray draws = random::categorical(random::key(1), logits, 1, Shape{10, 2}, false).to_host();
  for (std::int64_t row : {0, 1}) {
    std::set<std::int32_t> seen;
    for (std::int64_t i = 0; i < 10; ++i) seen.insert(draws.at<std::int32_t>({i, row}));
    EXPECT_EQ(seen.size(), 10u);
  }
  auto picked =
      random::choice(random::key(1), 30, {5, 6}, {.replace = false}).to_vector<std::int32_t>();
  EXPECT_EQ(std::set<std::int32_t>(picked.begin(), picked.end()).size(), 30u);
  // An element of probability zero is never drawn.
  Tensor p = from_host(std::vector<float>{0.5f, 0, 0.5f}, {3});
  auto possible = random::choice(random::key(1), 3, {2}, {.replace = false, .probabilities = p})
                      .to_vector<std::int32_t>();
  std::sort(possible.begin(), possible.end());
  EXPECT_THAT(possible, ElementsAre(0, 2));
}

}  // namespace
}  // namespace meshard
