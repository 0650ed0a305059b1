// Misuse of jitted functions and of traced values.
#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

constexpr auto kInvalid = ErrorCode::kInvalidArgument;
constexpr auto kPrecondition = ErrorCode::kFailedPrecondition;

struct Pair {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};

struct JitErrors : testing::Test {
  JitErrors() { fake_runtime(); }
  // A value on a device with no other references to it.
  static Tensor computed(SourceLocation where = SourceLocation::current()) {
    Tensor x = add(In(f32({8}), where), In(1, where));
    sync({x});
    return x;
  }
};

TEST_F(JitErrors, UndefinedArgumentsAreNamed) {
  std::uint32_t line = __LINE__ + 1;
  auto f = jit([](Tensor x, const Pair& p) { return x + p.w + p.b; });
  EXPECT_TRUE(throws_error(
      [&] {
        (void)f(f32({2}), Pair{f32({2}), Tensor()});
      },
      kInvalid, {cat("jit_error_test.cc:", line), "argument 1.b", "has no value"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)f(Tensor(), Pair{f32({2}), f32({2})});
      },
      kInvalid, {cat("jit_error_test.cc:", line), "argument 0", "has no value"}));
}

TEST_F(JitErrors, DonatedArgumentsAreGone) {
  auto spend = jit([](const Pair& p) { return p.w + p.b; }, {.donate = {0}});
  std::uint32_t line = __LINE__ - 1;
  auto use = jit([](Tensor x, const Pair& p) { return x + p.b; });
  Tensor x = computed(), kept = computed();
  (void)spend(Pair{x, computed()});
  std::string spent = cat("donated to a program at jit_error_test.cc:", line);
  EXPECT_TRUE(throws_error([&] { (void)x.to_host(); }, kPrecondition,
                           {at_line({__FILE__, "", __LINE__ - 1}), "f32[8]", "is gone", spent}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)use(kept, Pair{computed(), x});
      },
      kPrecondition,
      {cat("jit_error_test.cc:", line + 2), "argument 1.b, f32[8], is gone", spent,
       cat("it was made at jit_error_test.cc:", line + 3)}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)spend(Pair{kept, x});
      },
      kPrecondition, {"argument 0.b", spent}));
  EXPECT_EQ(kept.value().storage()->gone(), "") << "nothing was consumed";
  Tensor later = x + 1;
  EXPECT_ERROR_HERE(later.to_host(), kPrecondition, "f32[8]", "is gone", spent);
}

TEST_F(JitErrors, DeletedArguments) {
  Tensor x = computed();
  auto f = jit([](Tensor t) { return t + 1; });
  auto& array = static_cast<DeviceArray&>(*x.value().storage());
  const_cast<pjrt::BufferList&>(array.buffers()).delete_now().value();
  EXPECT_TRUE(throws_error([&] { (void)f(x); }, kPrecondition,
                           {"jit_error_test.cc:", "argument 0, f32[8], is gone: it was deleted"}));
}

TEST_F(JitErrors, TheSameTensorDonatedAndUsed) {
  std::uint32_t line = __LINE__ + 1;
  auto f = jit([](Tensor a, Tensor b) { return a + b; }, {.donate = {0}});
  Tensor x = computed();
  EXPECT_TRUE(throws_error([&] { (void)f(x, x); }, kInvalid, {cat("jit_error_test.cc:", line)}));
  EXPECT_EQ(x.value().storage()->gone(), "");
}

TEST_F(JitErrors, TracedValuesCannotBeRead) {
  std::uint32_t line = 0;
  auto f = jit([&](Tensor x) {
    line = __LINE__ + 1;
    return x * x.item<float>();
  });
  EXPECT_TRUE(throws_error([&] { (void)f(f32({})); }, kPrecondition, {"traced value"}));
  try {
    (void)f(f32({}));
  } catch (const Error& error) {
    EXPECT_EQ(error.where().line, line) << error.what();
    EXPECT_NE(std::string(error.what()).find("Return it"), std::string::npos);
  }
}

TEST_F(JitErrors, LeakedTracedValues) {
  Tensor leaked;
  auto f = jit([&](Tensor x) {
    leaked = x + 1;
    return x;
  });
  (void)f(f32({2}));
  EXPECT_ERROR_HERE(leaked.to_host(), kPrecondition, "traced value",
                    "recorded at jit_error_test.cc:");
  EXPECT_ERROR_HERE(sync({leaked}), kPrecondition, "traced value",
                    "recorded at jit_error_test.cc:");
  EXPECT_TRUE(throws_error([&] { (void)jit([&](Tensor y) { return y + leaked; })(f32({2})); },
                           kPrecondition, {"jit_error_test.cc:", "traced value"}));
  EXPECT_TRUE(
      throws_error([&] { (void)jit([](Tensor y) { return y; })(leaked); }, kPrecondition,
                   {"jit_error_test.cc:", "traced value", "recorded at jit_error_test.cc:"}));
}

TEST_F(JitErrors, ErrorsInsideTheFunctionNameItsLine) {
  std::uint32_t line = __LINE__ + 1;
  auto f = jit([](Tensor a, Tensor b) { return matmul(a, b); });
  EXPECT_TRUE(throws_error(
      [&] {
        (void)f(f32({2, 3}), f32({2, 3}));
      },
      kInvalid, {cat("jit_error_test.cc:", line), "f32[2,3]"}));
}

}  // namespace
}  // namespace meshard
