#include "meshard/partitioned/collective_call.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <functional>
#include <thread>

#include "tests/support/matchers.h"
#include "tests/support/thread_communicator.h"

namespace meshard {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<std::int64_t>;

pjrt::HostCallArray array(void* data, const Numbers& dimensions,
                          pjrt::ElementType element = pjrt::ElementType::kF32) {
  return {element, dimensions, data};
}

// What each of `size` processes receives when it calls with its operands.
struct Exchange {
  int size = 2;
  std::vector<std::int32_t> ranks = {}, sizes = {};
  CollectiveCallKind kind = CollectiveCallKind::kAllReduce;
  std::int32_t dimension = 0;
  Reduction reduction = Reduction::kSum;
  Numbers in = {}, out = {};  // dimensions
  std::size_t arrays = 1;

  std::vector<std::vector<Floats>> operator()(
      const std::function<float(int rank, std::size_t array, std::size_t i)>& value) const {
    std::vector<std::vector<Floats>> results(static_cast<std::size_t>(size));
    auto communicators = make_thread_communicators(size, std::chrono::seconds(10));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] { results[rank] = one(rank, value, *communicators[rank]); });
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  std::vector<Floats> one(int rank,
                          const std::function<float(int, std::size_t, std::size_t)>& value,
                          Communicator& communicator) const {
    CollectiveCall call{.kind = kind,
                        .reduction = reduction,
                        .dimension = dimension,
                        .ranks = ranks,
                        .sizes = sizes,
                        .chained = true,
                        .where = "here"};
    auto count = [](const Numbers& dimensions) {
      std::size_t all = 1;
      for (std::int64_t d : dimensions) all *= static_cast<std::size_t>(d);
      return all;
    };
    std::vector<Floats> from(arrays, Floats(count(in))), to(arrays, Floats(count(out), -1));
    std::int32_t chain = 0, next = 9;
    pjrt::HostCall host;
    for (std::size_t k = 0; k < arrays; ++k) {
      for (std::size_t i = 0; i < from[k].size(); ++i) from[k][i] = value(rank, k, i);
      host.arguments.push_back(array(from[k].data(), in));
      host.results.push_back(array(to[k].data(), out));
    }
    static const Numbers kScalar;
    host.arguments.push_back(array(&chain, kScalar, pjrt::ElementType::kS32));
    host.results.push_back(array(&next, kScalar, pjrt::ElementType::kS32));
    Result<void> done = perform(call, host, communicator);
    EXPECT_TRUE(done.ok()) << done.error();
    EXPECT_EQ(next, 0);
    return to;
  }
};

// Element i of array k of a process.
float plain(int rank, std::size_t k, std::size_t i) {
  return static_cast<float>(100 * rank + 10 * static_cast<int>(k) + static_cast<int>(i));
}

TEST(CollectiveCall, AllReducesOfSeveralArraysInGroups) {
  Exchange run{.size = 4, .ranks = {0, 2, 1, 3}, .sizes = {2}, .in = {2}, .out = {2}, .arrays = 2};
  auto results = run(plain);
  EXPECT_EQ(results[0], (std::vector<Floats>{{200, 202}, {220, 222}}));  // 0 + 200, ...
  EXPECT_EQ(results[2], results[0]);
  EXPECT_EQ(results[3], (std::vector<Floats>{{400, 402}, {420, 422}}));  // 100 + 300, ...
}

TEST(CollectiveCall, GathersAlongAnInnerDimension) {
  Exchange run{.ranks = {1, 0},
               .sizes = {2},
               .kind = CollectiveCallKind::kAllGather,
               .dimension = 1,
               .in = {2, 2},
               .out = {2, 4}};
  // Rows [0 1] [2 3]; process 1 comes first.
  EXPECT_EQ(run(plain)[0][0], (Floats{100, 101, 0, 1, 102, 103, 2, 3}));
}

TEST(CollectiveCall, ScattersAlongAnInnerDimension) {
  Exchange run{.ranks = {0, 1},
               .sizes = {2},
               .kind = CollectiveCallKind::kReduceScatter,
               .dimension = 1,
               .reduction = Reduction::kMax,
               .in = {2, 4},
               .out = {2, 2}};
  auto results = run(plain);
  EXPECT_EQ(results[0][0], (Floats{100, 101, 104, 105}));
  EXPECT_EQ(results[1][0], (Floats{102, 103, 106, 107}));
}

TEST(CollectiveCall, ExchangesAlongBothDimensions) {
  Exchange run{.ranks = {0, 1},
               .sizes = {2},
               .kind = CollectiveCallKind::kAllToAll,
               .dimension = 1,
               .in = {2, 4},
               .out = {2, 4}};
  EXPECT_EQ(run(plain)[1][0], (Floats{2, 3, 102, 103, 6, 7, 106, 107}));
  run.dimension = 0;
  EXPECT_EQ(run(plain)[1][0], (Floats{4, 5, 6, 7, 104, 105, 106, 107}));
}

TEST(CollectiveCall, ExchangesTuples) {
  Exchange run{.ranks = {0, 1},
               .sizes = {2},
               .kind = CollectiveCallKind::kAllToAllOfTuple,
               .in = {2},
               .out = {2},
               .arrays = 2};
  EXPECT_EQ(run(plain)[1], (std::vector<Floats>{{10, 11}, {110, 111}}));
}

// In two rounds: 0 to 1 and 1 to 2; then 0 to 0. Process 3 receives zeros.
TEST(CollectiveCall, PermutesInRounds) {
  Exchange run{.size = 4,
               .ranks = {0, 1, 1, 2, 0, 0},
               .sizes = {2, 1},
               .kind = CollectiveCallKind::kPermute,
               .in = {1},
               .out = {1}};
  auto results = run(plain);
  EXPECT_EQ(results[0][0], (Floats{0}));
  EXPECT_EQ(results[1][0], (Floats{0}));
  EXPECT_EQ(results[2][0], (Floats{100}));
  EXPECT_EQ(results[3][0], (Floats{0}));
}

TEST(CollectiveCall, BroadcastsFromTheFirstMember) {
  Exchange run{.size = 3,
               .ranks = {2, 0},
               .sizes = {2},
               .kind = CollectiveCallKind::kBroadcast,
               .in = {2},
               .out = {2}};
  auto results = run(plain);
  EXPECT_EQ(results[0][0], (Floats{200, 201}));
  EXPECT_EQ(results[1][0], (Floats{0, 0}));  // in no group
  EXPECT_EQ(results[2][0], (Floats{200, 201}));
}

TEST(CollectiveCall, EmptyArraysAndGroupsOfOneSendNothing) {
  Exchange run{.ranks = {0, 1},
               .sizes = {2},
               .kind = CollectiveCallKind::kAllGather,
               .in = {0, 3},
               .out = {0, 3}};
  EXPECT_EQ(run(plain)[0][0], Floats{});
  Exchange alone{.ranks = {0, 1},
                 .sizes = {1},
                 .kind = CollectiveCallKind::kReduceScatter,
                 .in = {2},
                 .out = {2}};
  EXPECT_EQ(alone(plain)[1][0], (Floats{100, 101}));
}

// Notes the sizes that it is given.
struct SizeCommunicator : Communicator {
  std::size_t size_seen = 0;
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Result<void> see(std::size_t size) {
    size_seen = size;
    return {};
  }
  Result<void> call(std::span<const int>, const GroupCall& call, const void*, void*) override {
    return see(call.count);
  }
  Result<void> permute(int, int, const void*, void*, std::size_t bytes) override {
    return see(bytes);
  }
};

// 6 GB, in address space that is never touched.
TEST(CollectiveCall, SizesBeyond32Bits) {
  constexpr std::size_t kCount = std::size_t{3} << 29;
  void* memory = ::mmap(nullptr, 4 * kCount, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Numbers whole = {3, 1 << 29};
  const std::vector<std::int32_t> ranks = {0, 1}, sizes = {2}, pairs = {0, 1, 1, 0};
  auto size_of = [&](CollectiveCallKind kind, const Numbers& in, const Numbers& out) {
    SizeCommunicator communicator;
    CollectiveCall call{.kind = kind,
                        .ranks = kind == CollectiveCallKind::kPermute ? pairs : ranks,
                        .sizes = sizes,
                        .where = "here"};
    pjrt::HostCall host;
    host.arguments.push_back(array(memory, in));
    host.results.push_back(array(memory, out));
    EXPECT_TRUE(perform(call, host, communicator).ok());
    return communicator.size_seen;
  };
  EXPECT_EQ(size_of(CollectiveCallKind::kAllReduce, whole, whole), kCount);
  EXPECT_EQ(size_of(CollectiveCallKind::kPermute, whole, whole), 4 * kCount);
  const Numbers flat_half = {std::int64_t{kCount / 2}}, flat = {std::int64_t{kCount}};
  EXPECT_EQ(size_of(CollectiveCallKind::kAllGather, flat_half, flat), 2 * kCount);
  EXPECT_EQ(size_of(CollectiveCallKind::kReduceScatter, flat, flat_half), kCount / 2);
  EXPECT_EQ(size_of(CollectiveCallKind::kAllToAll, flat, flat), 2 * kCount);
  ::munmap(memory, 4 * kCount);
}

TEST(CollectiveCall, ErrorsSayWhere) {
  SizeCommunicator communicator;
  const std::vector<std::int32_t> ranks = {0, 1}, others = {1, 2}, sizes = {2};
  const Numbers four = {4}, three = {3};
  float data[4] = {};
  pjrt::HostCall host;
  host.arguments.push_back(array(data, four));
  host.results.push_back(array(data, three));
  CollectiveCall call{.kind = CollectiveCallKind::kAllReduce,
                      .ranks = ranks,
                      .sizes = sizes,
                      .where = "all-reduce n17 (train.cc:42)"};
  EXPECT_TRUE(throws_error([&] { perform(call, host, communicator).value(); }, ErrorCode::kInternal,
                           {"[all-reduce]", "do not fit", "all-reduce n17 (train.cc:42)"}));
  host.results[0] = array(data, four);
  call.ranks = others;
  EXPECT_FALSE(perform(call, host, communicator).ok());
  call.ranks = ranks;
  host.arguments[0].element = host.results[0].element = pjrt::ElementType::kS4;
  EXPECT_TRUE(throws_error([&] { perform(call, host, communicator).value(); },
                           ErrorCode::kUnimplemented, {"s4"}));
}

// The plugin hands the attributes over as lists of numbers and strings.
TEST(CollectiveCall, ReadsItsAttributes) {
  const std::vector<std::int32_t> kind = {1}, zero = {0}, one = {1}, ranks = {0, 1, 2, 3},
                                  sizes = {2}, wrong = {3}, many = {8};
  pjrt::HostCall host;
  auto set = [&](std::span<const std::int32_t> kinds, std::span<const std::int32_t> group_sizes) {
    host.numbers = {{"chained", one}, {"dimension", one},  {"kind", kinds},
                    {"ranks", ranks}, {"reduction", zero}, {"sizes", group_sizes}};
    host.attributes = {{"where", "here"}};
  };
  set(kind, sizes);
  CollectiveCall call = CollectiveCall::from_attributes(host).value();
  EXPECT_EQ(call.kind, CollectiveCallKind::kAllGather);
  EXPECT_EQ(call.dimension, 1);
  EXPECT_TRUE(call.chained);
  EXPECT_THAT(call.group_of(3), testing::ElementsAre(2, 3));
  EXPECT_TRUE(call.group_of(4).empty());
  EXPECT_EQ(call.to_string(),
            "{chained = 1 : i32, dimension = 1 : i32, kind = 1 : i32, ranks = array<i32: 0, 1, 2, "
            "3>, reduction = 0 : i32, sizes = array<i32: 2>, where = \"here\"}");
  set(kind, wrong);
  EXPECT_FALSE(CollectiveCall::from_attributes(host).ok());
  set(many, sizes);
  EXPECT_FALSE(CollectiveCall::from_attributes(host).ok());
  set({}, sizes);
  EXPECT_FALSE(CollectiveCall::from_attributes(host).ok());
}

TEST(CollectiveCall, QuotesItsPlace) {
  CollectiveCall call{.where = "a\"b\\c\n"};
  EXPECT_THAT(call.to_string(), testing::HasSubstr("where = \"a\\22b\\5Cc\\0A\"}"));
}

}  // namespace
}  // namespace meshard
