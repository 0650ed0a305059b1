#include "meshard/runtime/loaded_program.h"

#include <gmock/gmock.h>

#include <thread>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/internal/call_program.h"
#include "meshard/runtime/internal/program_here.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

struct Programs : OnPlugin {
  // A program whose parameters have type f32[8] and these shardings.
  template <class F>
  std::shared_ptr<const LoadedProgram> load(const std::vector<std::optional<Sharding>>& shardings,
                                            F f, std::vector<std::uint32_t> donated = {}) {
    internal::TraceScope scope;
    std::vector<Tensor> parameters;
    std::vector<Value> leaves, results;
    for (const auto& sharding : shardings) {
      parameters.push_back(make_parameter({DType::f32, {8}}, sharding, {}));
      leaves.push_back(parameters.back().value());
    }
    for (const Tensor& result : f(parameters)) results.push_back(result.value());
    Program program{.graph = Graph::build(leaves, results, scope.trace()),
                    .donated = std::move(donated)};
    return cache.get(program, SourceLocation::current());
  }
  ProgramCache cache{process_runtime().platforms};
};
using Tensors = std::vector<Tensor>;

Tensor counting(float first = 0) {
  std::vector<float> values;
  for (int i = 0; i < 8; ++i) values.push_back(first + static_cast<float>(i));
  return from_host(std::move(values), {8});
}
std::vector<Tensor> run(const LoadedProgram& program, const Tensors& arguments,
                        std::vector<std::string> names = {}) {
  std::vector<const Tensor*> given;
  for (const Tensor& argument : arguments) given.push_back(&argument);
  std::vector<Tensor> results(program.shardings().results.size());
  (void)call_program(process_runtime(), program, given, results, SourceLocation::current(), names);
  return results;
}

TEST_F(Programs, HostValuesArePlacedOnce) {
  Sharding halves(Mesh({{"x", 2}}), P("x"));
  auto program =
      load({halves, std::nullopt}, [](const Tensors& p) { return Tensors{p[0] + p[1]}; });
  Tensor a = counting(), b = counting(10);
  restart();
  EXPECT_THAT(run(*program, {a, b})[0].to_vector<float>(),
              ElementsAre(10, 12, 14, 16, 18, 20, 22, 24));
  EXPECT_EQ(done().buffers_sent, 4u) << "each shard once";
  EXPECT_LE(done().bytes_sent, 32u + 64u);
  restart();
  (void)run(*program, {a, b});
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Programs, ArgumentsInTheOrderOfTheirOwnMesh) {
  Mesh forward({{"x", 4}}), backward({{"y", 4}}, {3, 2, 1, 0});
  auto program =
      load({Sharding(forward, P("x")), Sharding(backward, P("y"))}, [&](const Tensors& p) {
        return Tensors{sharding_constraint(p[0] - p[1], Sharding(backward, P("y")))};
      });
  Tensor difference = run(*program, {counting(10), counting()})[0];
  EXPECT_THAT(difference.to_vector<float>(), ElementsAre(10, 10, 10, 10, 10, 10, 10, 10));
  const auto& array = static_cast<const DeviceArray&>(*difference.value().storage());
  EXPECT_EQ(array.device_id(0), 3);
}

// While alive, no evaluator can be reached.
struct NoEvaluator {
  NoEvaluator() { install_evaluator(nullptr); }
  ~NoEvaluator() { install_runtime(); }
};

TEST_F(Programs, ArgumentsAreBroughtToTheirDevicesWithoutTheEvaluator) {
  Sharding halves(Mesh({{"x", 2}}), P("x"));
  auto program = load({halves, halves, halves},
                      [](const Tensors& p) { return Tensors{p[0] + p[1] * 10 + p[2] * 100}; });
  Tensor on_host = counting(), on_one_device = counting() + 1;
  Tensor replicated = mark_sharding(counting(2), halves.mesh(), P(none));
  compute({on_one_device});
  NoEvaluator none;
  EXPECT_THROW((void)evaluator(), Error);
  restart();
  EXPECT_THAT(run(*program, {on_host, on_one_device, replicated})[0].to_vector<float>(),
              ElementsAre(210, 321, 432, 543, 654, 765, 876, 987));
  EXPECT_EQ(done().buffers_sent, 2u) << "only the host value";
  EXPECT_EQ(done().buffers_moved, 1u) << "one tile of the value on one device";
}

TEST_F(Programs, ALaunchPlacesNothing) {
  Sharding halves(Mesh({{"x", 2}}), P("x"));
  auto program = load({halves}, [](const Tensors& p) { return Tensors{p[0] + 1}; });
  Tensor same = mark_sharding(counting(), halves.mesh(), P("x"));
  Tensor other = mark_sharding(counting(), halves.mesh(), P(none));
  const auto* array = static_cast<const DeviceArray*>(same.value().storage());
  EXPECT_TRUE(program->accepts(0, *array));
  EXPECT_FALSE(program->accepts(0, static_cast<const DeviceArray&>(*other.value().storage())));
  restart();
  Tensor result;
  (void)program->launch({&array, 1}, {&result, 1}, SourceLocation::current()).value();
  EXPECT_EQ(done().buffers_sent + done().buffers_moved, 0u);
  EXPECT_THAT(result.to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Programs, AGoneArgumentIsCalledByItsName) {
  Sharding halves(Mesh({{"x", 2}}), P("x"));
  auto program = load(
      {halves, halves},
      [&](const Tensors& p) { return Tensors{sharding_constraint(p[0] + p[1], halves)}; }, {0});
  auto copy = load(
      {halves}, [&](const Tensors& p) { return Tensors{sharding_constraint(p[0] + 0, halves)}; });
  Tensor a = run(*copy, {counting()})[0], b = run(*copy, {counting()})[0];
  (void)run(*program, {a, b});
  for (int order : {0, 1}) {
    Tensors arguments = order == 0 ? Tensors{a, b} : Tensors{b, a};
    EXPECT_TRUE(throws_error(
        [&] {
          (void)run(*program, arguments, {"the first", "the second"});
        },
        ErrorCode::kFailedPrecondition,
        {order == 0 ? "the first" : "the second", "f32[8]",
         "donated to a program at loaded_program_test.cc:"}));
  }
  EXPECT_THAT(b.to_vector<float>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)) << "nothing was consumed";
}

// Runs a program more often than it takes to load its parts.
constexpr int kOften = ProgramByDevice::kLaunchesBefore + 8;

bool loads_parts() { return runtime_client().rules().loaded_parts_run_inline; }

TEST_F(Programs, OftenCalledSmallProgramsAreLoadedForEachDevice) {
  Sharding split(Mesh({{"x", 4}}, {3, 2, 1, 0}), P("x"));
  for (bool donates : {false, true}) {
    auto program = load(
        {split, split},
        [&](const Tensors& p) {
          return Tensors{sharding_constraint(p[0] + 1, split),
                         sharding_constraint(p[1] * 2, split)};
        },
        donates ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{});
    auto placed = [&] { return mark_sharding(counting(), split.mesh(), P("x")); };
    Tensors state = {placed(), placed()};
    restart();
    for (int i = 0; i < kOften; ++i) {
      if (i % 8 == 0) state[1] = placed();
      state = run(*program, state);
    }
    EXPECT_EQ(done().part_loads, loads_parts() ? 1u : 0u);
    EXPECT_EQ(state[0].to_vector<float>()[7], 7 + kOften);
    EXPECT_EQ(state[1].to_vector<float>()[3], 3 * 256);
    EXPECT_EQ(static_cast<const DeviceArray&>(*state[1].value().storage()).device_id(0), 3);
  }
}

TEST_F(Programs, ProgramsWhosePartsDifferAreNotLoadedForEachDevice) {
  Mesh mesh({{"x", 4}});
  Sharding split(mesh, P("x")), whole(mesh, P(none));
  auto sums = load({split}, [&](const Tensors& p) {
    return Tensors{sharding_constraint(p[0] - sum(p[0]), split)};
  });
  auto slices = load(
      {whole}, [&](const Tensors& p) { return Tensors{sharding_constraint(p[0] * 2, split)}; });
  for (const auto& program : {sums, slices}) {
    Tensor x = mark_sharding(counting(), mesh, program == sums ? P("x") : P(none));
    restart();
    Tensor y;
    for (int i = 0; i < kOften; ++i) y = run(*program, {x})[0];
    EXPECT_EQ(done().part_loads, 0u);
    EXPECT_EQ(y.to_vector<float>()[5], program == sums ? 5 - 28 : 10);
  }
}

TEST_F(Programs, PartsAreLoadedFromTheBytesOfAProgramForOtherDevices) {
  Sharding first(Mesh({{"x", 2}}), P("x")), last(Mesh({{"x", 2}}, {6, 7}), P("x"));
  auto f = [](const Tensors& p) { return Tensors{p[0] * 3}; };
  (void)run(*load({first}, f), {counting()});
  auto program = load({last}, f);
  Tensor x = mark_sharding(counting(), last.mesh(), P("x"));
  restart();
  Tensor y;
  for (int i = 0; i < kOften; ++i) y = run(*program, {x})[0];
  EXPECT_TRUE(program->is_from_bytes());
  EXPECT_EQ(done().part_loads, loads_parts() ? 1u : 0u);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 3, 6, 9, 12, 15, 18, 21));
}

// Parts that run alone, and programs whose devices wait for each other, on the same devices.
TEST_F(Programs, ThreadsMixPartsAndCollectives) {
  Mesh mesh({{"x", 8}});
  Sharding split(mesh, P("x"));
  auto small = load(
      {split}, [&](const Tensors& p) { return Tensors{sharding_constraint(p[0] + 1, split)}; });
  auto sums = load({split}, [&](const Tensors& p) {
    return Tensors{sharding_constraint(p[0] - sum(p[0]) * 0.125f, split)};
  });
  constexpr int kRounds = 200;
  auto steps = [&](float first, std::vector<float>& values) {
    Tensor x = mark_sharding(counting(first), mesh, P("x"));
    for (int i = 0; i < kRounds; ++i) {
      for (int k = 0; k < i % 5; ++k) x = run(*small, {x})[0];
      x = run(*sums, {x})[0];  // its mean is 0 now
    }
    values = x.to_vector<float>();
  };
  std::vector<float> results[3];
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] { steps(8.0f * static_cast<float>(t), results[t]); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& values : results)
    EXPECT_THAT(values, ElementsAre(-3.5f, -2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 3.5f));
}

TEST_F(Programs, EquivalentShardingsAreUsedAsTheyAre) {
  Mesh mesh({{"x", 2}, {"y", 1}});
  Sharding asked(mesh, P("x")), same(mesh, P(axes("x", "y")));
  auto program = load({asked}, [](const Tensors& p) { return Tensors{p[0] * 2}; });
  auto maker = load({std::nullopt},
                    [&](const Tensors& p) { return Tensors{sharding_constraint(p[0] + 1, same)}; });
  Tensor made = run(*maker, {counting()})[0];
  restart();
  restart();
  Tensor doubled = run(*program, {made})[0];
  EXPECT_EQ(done().buffers_sent + done().buffers_read, 0u);
  EXPECT_EQ(doubled.to_vector<float>()[7], 16);
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Programs, AValueOfOneDeviceGoesToTheOthersWithoutTheHost) {
  Mesh mesh({{"x", 2}});
  auto program = load({Sharding(mesh, P("x"))}, [](const Tensors& p) { return Tensors{p[0] * 2}; });
  auto maker = load({std::nullopt}, [](const Tensors& p) { return Tensors{p[0] + 1}; });
  Tensor made = run(*maker, {counting()})[0];  // whole, on device 0
  EXPECT_EQ(run(*program, {made})[0].to_vector<float>()[7], 16);
}

}  // namespace
}  // namespace meshard
