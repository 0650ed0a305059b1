#include "meshard/runtime/loaded_program.h"

#include <gmock/gmock.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/internal/call_program.h"
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
