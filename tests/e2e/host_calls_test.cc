// debug_print, pure_callback and NaN checks in running programs.
#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "meshard/lapack/lapack.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Collects the lines of debug_print.
class HostCalls : public OnPlugin {
 protected:
  void SetUp() override {
    OnPlugin::SetUp();
    set_debug_print_handler([this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    });
  }
  void TearDown() override {
    sync();
    set_debug_print_handler({});
    set_check_nans(false);
  }
  // The lines so far, which are forgotten.
  std::vector<std::string> lines() {
    sync();
    std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(HostCalls, PrintsAtOnceOutsideOfJit) {
  debug_print("x = {}, twice {{{}}}", arange(3.0), arange(3.0) * 2);
  EXPECT_THAT(lines(), ElementsAre("x = [0, 1, 2], twice {[0, 2, 4]}"));
  debug_print("a number {}", 7);
  EXPECT_THAT(lines(), ElementsAre("a number 7"));
}

TEST_F(HostCalls, PrintsEachTimeAJittedFunctionRuns) {
  auto f = jit([](Tensor x) {
    debug_print("x = {}", x * 10);
    return x + 1;
  });
  EXPECT_EQ(f(arange(2.0)).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_THAT(lines(), ElementsAre("x = [0, 10]"));
  sync(f(arange(2.0) + 1));
  EXPECT_THAT(lines(), ElementsAre("x = [10, 20]"));
}

TEST_F(HostCalls, PrintsTheWholeOfAShardedValueOnce) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  Tensor x = mark_sharding(arange(8.0), mesh, P("x"));
  auto f = jit([](Tensor v) {
    debug_print("x = {}", v);
    debug_print("sum = {}", sum(v));
    return v + 1;
  });
  Tensor y = f(x);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_THAT(lines(), UnorderedElementsAre("x = [0, 1, 2, 3, 4, 5, 6, 7]", "sum = 28"));
  ASSERT_TRUE(y.sharding());
}

TEST_F(HostCalls, AMarkedResultKeepsItsSharding) {
  Mesh mesh({{"x", 4}});
  auto f = jit([&](Tensor x) {
    debug_print("here");
    return mark_sharding(x * 2, mesh, P("x"));
  });
  Tensor y = f(ones({8}));
  EXPECT_EQ(y.sharding()->spec(), PartitionSpec(P("x")));
  EXPECT_THAT(lines(), ElementsAre("here"));
}

TEST_F(HostCalls, ManualFunctionsPrintOnEachDevice) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {2, 3, 6, 7});
  auto f = jit(manual(mesh, P("x"), P("x"), [](Tensor part) {
    debug_print("part {}", part);
    debug_print("total {}", all_reduce(sum(part), "x"));
    return part * 2;
  }));
  Tensor y = f(arange(4.0));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 2, 4, 6}));
  EXPECT_THAT(lines(), UnorderedElementsAre("[device 2, x=0] part [0, 1]",
                                            "[device 6, x=1] part [2, 3]", "total 6"));
}

TEST_F(HostCalls, ManualFunctionsPrintOutsideOfJitToo) {
  Mesh mesh({{"x", 2}});
  auto f = manual(mesh, P("x"), P("x"), [](Tensor part) {
    debug_print("part {}", part);
    return part * 2;
  });
  Tensor y = f(arange(4.0));
  sync(y);
  EXPECT_THAT(lines(),
              UnorderedElementsAre("[device 0, x=0] part [0, 1]", "[device 1, x=1] part [2, 3]"));
}

TEST_F(HostCalls, PartlyManualFunctionsPrintEachPartOnce) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  auto f = jit(manual(mesh, P("x"), P("x"),
                      [](Tensor part) {
                        debug_print("part {}", part);
                        return part * 2;
                      },
                      {.axes = {"x"}}));
  Tensor x = mark_sharding(reshape(arange(8.0), {4, 2}), mesh, P("x", "y"));
  sync(f(x));
  EXPECT_THAT(lines(), UnorderedElementsAre(HasSubstr("x=0] part [[0, 1], [2, 3]]"),
                                            HasSubstr("x=1] part [[4, 5], [6, 7]]")));
}

TEST_F(HostCalls, LoopsPrintInEachIterationAndBranchesWhenTaken) {
  auto f = jit([](Tensor x) {
    Tensor y = fori_loop(
        0, 3,
        [](Tensor i, Tensor carry) {
          debug_print("i = {}", i);
          return carry * 2;
        },
        x);
    return cond(
        sum(y) > 100,
        [](Tensor z) {
          debug_print("large");
          return z;
        },
        [](Tensor z) {
          debug_print("small");
          return z;
        },
        y);
  });
  sync(f(ones({2})));
  EXPECT_THAT(lines(), UnorderedElementsAre("i = 0", "i = 1", "i = 2", "small"));
}

TEST_F(HostCalls, LoopsOfShardedValuesPrintOnce) {
  Mesh mesh({{"x", 8}});
  auto f = jit([](Tensor x) {
    return fori_loop(
        0, 2,
        [](Tensor i, Tensor carry) {
          debug_print("i = {}, sum {}", i, sum(carry));
          return carry * 2;
        },
        x);
  });
  sync(f(mark_sharding(ones({8}), mesh, P("x"))));
  EXPECT_THAT(lines(), UnorderedElementsAre("i = 0, sum 8", "i = 1, sum 16"));
}

TEST_F(HostCalls, DerivativesPrintTheForwardPassOnce) {
  auto f = [](Tensor x) {
    Tensor y = sin(x);
    debug_print("y = {}", y);
    return sum(y * y);
  };
  Tensor x = zeros({2});
  EXPECT_EQ(jit(grad(f))(x).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_THAT(lines(), ElementsAre("y = [0, 0]"));
  sync(grad(f)(x));
  EXPECT_THAT(lines(), ElementsAre("y = [0, 0]"));
  auto both = jit([&](Tensor v) { return jvp(f, v, v).second; });
  sync(both(x));
  EXPECT_THAT(lines(), ElementsAre("y = [0, 0]"));
}

TEST_F(HostCalls, GradientsThroughLoopsAreRight) {
  auto f = [](Tensor x) {
    return fori_loop(
        0, 2,
        [](Tensor i, Tensor carry) {
          debug_print("{}: {}", i, carry);
          return carry * carry;
        },
        x);
  };
  EXPECT_EQ(jit(grad(f))(from_host(std::vector<float>{3}, {})).item<float>(), 4 * 27);
  EXPECT_THAT(lines(), testing::IsSupersetOf({"0: 3", "1: 9"}));
}

TEST_F(HostCalls, CheckpointPrintsAgain) {
  auto f = jit(grad(checkpoint([](Tensor x) {
    Tensor y = sin(x);
    debug_print("y = {}", y);
    return sum(y * y);
  })));
  sync(f(zeros({1})));
  std::vector<std::string> all = lines();
  EXPECT_GE(all.size(), 1u);
  EXPECT_LE(all.size(), 2u);
  for (const std::string& line : all) EXPECT_EQ(line, "y = [0]");
}

TEST_F(HostCalls, LoopsWhoseResultsAreNotUsedPrintToo) {
  auto loop = [](Tensor x) {
    return fori_loop(
        0, 2,
        [](Tensor i, Tensor carry) {
          debug_print("i = {}", i);
          return carry * 2;
        },
        x);
  };
  auto f = [&](Tensor x) {
    (void)loop(x);
    return x + 1;
  };
  sync(jit(f)(ones({2})));
  EXPECT_THAT(lines(), UnorderedElementsAre("i = 0", "i = 1"));
  sync(jit(vmap(f))(ones({2})));
  EXPECT_EQ(lines().size(), 2u);
  sync(f(ones({2})));
  EXPECT_THAT(lines(), UnorderedElementsAre("i = 0", "i = 1"));
}

TEST_F(HostCalls, BatchesPrintEachMember) {
  auto f = vmap([](Tensor x) {
    debug_print("member {}", x);
    return x * 2;
  });
  sync(jit(f)(arange(3.0)));
  EXPECT_THAT(lines(), UnorderedElementsAre("member 0", "member 1", "member 2"));
  sync(f(arange(2.0)));
  EXPECT_THAT(lines(), UnorderedElementsAre("member 0", "member 1"));
}

TEST_F(HostCalls, AFormatMustFit) {
  EXPECT_TRUE(throws_error([] { debug_print("{} {}", ones({1})); }, ErrorCode::kInvalidArgument,
                           {"has 2 {}, but the number of values is 1"}));
  EXPECT_TRUE(throws_error([] { debug_print("{x}", ones({1})); }, ErrorCode::kInvalidArgument,
                           {"single '{' at position 0"}));
}

TEST_F(HostCalls, AnExceptionOfTheHandlerIsAnErrorOfTheLaunch) {
  set_debug_print_handler([](const std::string&) { throw std::runtime_error("no more lines"); });
  auto f = jit([](Tensor x) {
    debug_print("x = {}", x);
    return x + 1;
  });
  EXPECT_THAT([&] { f(ones({2})).to_host(); },
              testing::Throws<Error>(testing::Property(&Error::what, HasSubstr("no more lines"))));
  set_debug_print_handler([](const std::string&) {});
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST_F(HostCalls, PureCallbacksComputeOnTheHost) {
  auto twice = [](std::span<const HostArray> a) {
    std::vector<float> values = a[0].to_vector<float>();
    for (float& value : values) value *= 2;
    return std::vector{HostArray::from_vector(std::move(values), a[0].shape())};
  };
  auto f = [&](Tensor x) { return pure_callback(twice, {x}, {x.type()})[0] + 1; };
  EXPECT_EQ(f(arange(3.0)).to_vector<float>(), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(jit(f)(arange(3.0)).to_vector<float>(), (std::vector<float>{1, 3, 5}));
  Tensor sharded = mark_sharding(arange(8.0), Mesh({{"x", 4}}), P("x"));
  EXPECT_EQ(jit(f)(sharded).to_vector<float>(), (std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(jit(vmap(f))(arange(3.0)).to_vector<float>(), (std::vector<float>{1, 3, 5}));
  auto local = jit(manual(Mesh({{"x", 4}}), P("x"), P("x"), f));
  EXPECT_EQ(local(arange(8.0)).to_vector<float>(), (std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15}));
}

TEST_F(HostCalls, ErrorsOfPureCallbacksAreErrorsOfTheLaunch) {
  auto wrong = jit([](Tensor x) {
    return pure_callback([](std::span<const HostArray> a) { return std::vector{a[0]}; }, {x},
                         {{DType::f64, x.shape()}})[0];
  });
  EXPECT_THAT(
      [&] { wrong(ones({2})).to_host(); },
      testing::Throws<Error>(testing::Property(&Error::what, HasSubstr("is f32[2], not f64[2]"))));
  EXPECT_TRUE(
      throws_error([] { pure_callback([](auto) { return std::vector<HostArray>(); }, {}, {}); },
                   ErrorCode::kInvalidArgument, {"result type"}));
}

// Returns the error that `call` throws.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kUnknown, "no error");
}

TEST_F(HostCalls, ANanNamesTheLineThatProducedIt) {
  set_check_nans(true);
  std::uint32_t line = 0;
  auto f = jit([&](Tensor x) {
    Tensor y = x - 1;
    line = SourceLocation::current().line + 1;
    Tensor z = log(y);
    return sum(z * 2);
  });
  Error error = error_of([&] { f(zeros({3})); });
  EXPECT_THAT(error.message(), HasSubstr("is log, f32[3]"));
  EXPECT_EQ(error.where().line, line);
  EXPECT_EQ(f(full({3}, 2.0)).item<float>(), 0);
}

TEST_F(HostCalls, NansAreFoundOnShardsInLoopsAndInManualFunctions) {
  set_check_nans(true);
  Mesh mesh({{"x", 8}});
  Tensor x = mark_sharding(arange(8.0) - 1, mesh, P("x"));
  EXPECT_THAT(error_of([&] { jit([](Tensor v) { return sqrt(v) + 1; })(x); }).message(),
              HasSubstr("is sqrt, f32[8]"));
  auto loop = jit([](Tensor v) {
    return fori_loop(
        0, 3, [](Tensor, Tensor carry) { return sqrt(carry - 1); }, v);
  });
  EXPECT_THAT(error_of([&] { loop(full({2}, 2.0)); }).message(), HasSubstr("is sqrt, f32[2]"));
  auto local = jit(manual(mesh, P("x"), P("x"), [](Tensor part) { return log(part); }));
  EXPECT_THAT(error_of([&] { local(x); }).message(), HasSubstr("is log, f32[1]"));
}

TEST_F(HostCalls, NansOfArgumentsAndUnusedNansAreNoOperations) {
  set_check_nans(true);
  auto f = jit([](Tensor x) { return x + 1; });
  EXPECT_THAT(error_of([&] { f(full({2}, std::nan(""))); }).message(),
              HasSubstr("no operation produced it"));
  auto masked = jit([](Tensor x) { return where(x > 0, log(x), 0); });
  EXPECT_EQ(masked(full({2}, -1.0)).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST_F(HostCalls, NanChecksOfRecordedValuesAndOfTheBackwardPass) {
  set_check_nans(true);
  EXPECT_THAT(error_of([&] { log(zeros({2}) - 1).to_host(); }).message(), HasSubstr("is log"));
  Error error = error_of([&] { jit(grad([](Tensor x) { return sum(sqrt(x) * 0); }))(zeros({2})); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfRange) << error.what();
}

TEST_F(HostCalls, ChecksCanBeTurnedOnLater) {
  auto f = jit([](Tensor x) { return log(x); });
  Tensor x = full({2}, -1.0);
  EXPECT_TRUE(std::isnan(f(x).to_vector<float>()[0]));
  set_check_nans(true);
  EXPECT_EQ(error_of([&] { f(x); }).code(), ErrorCode::kOutOfRange);
  set_check_nans(false);
  EXPECT_TRUE(std::isnan(f(x).to_vector<float>()[0]));
}

// A triangle with x = u^T u, computed by LAPACK on each device.
TEST_F(HostCalls, RoutinesOfLapackAreCalled) {
  if (auto lapack = Lapack::open(); !lapack.ok()) GTEST_SKIP() << lapack.error().what();
  auto cholesky = [](const Tensor& x) {
    return custom_call("lapack_dpotrf_ffi", {x}, {x.type(), TensorType{DType::i32, Shape{}}},
                       {.backend_config = "{uplo = 76 : ui8}"})[0];
  };
  Tensor x = from_host(std::vector<double>{4, 2, 2, 5}, {2, 2});
  // The routine keeps the other half as it was.
  EXPECT_EQ(jit(cholesky)(x).to_vector<double>(), (std::vector<double>{2, 1, 2, 2}));
  Mesh mesh({{"x", 2}}, {3, 5});
  EXPECT_EQ(jit(cholesky)(mark_sharding(x, mesh, P("x"))).to_vector<double>(),
            (std::vector<double>{2, 1, 2, 2}));
}

}  // namespace
}  // namespace meshard
