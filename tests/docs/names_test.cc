// Uses `using namespace meshard;` together with C library headers, which declare names in the
// global namespace. Most of the test is that this file compiles.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <meshard/meshard.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <any>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <ranges>
#include <type_traits>

using namespace meshard;

namespace {

template <class T, class Expected>
constexpr bool kIs = std::is_same_v<T, Expected>;

TEST(Names, FunctionsOfNumbersStayThoseOfNumbers) {
  double d = 0.25;
  EXPECT_TRUE((kIs<decltype(exp(d)), double> && kIs<decltype(exp(1)), double>));
  EXPECT_TRUE((kIs<decltype(pow(d, 2)), double> && kIs<decltype(pow(2, 3)), double>));
  EXPECT_TRUE((kIs<decltype(abs(-3)), int> && kIs<decltype(fabs(d)), double>));
  EXPECT_TRUE((kIs<decltype(remainder(d, d)), double> && kIs<decltype(atan2(d, d)), double>));
  EXPECT_EQ(
      asin(d) + acosh(1 + d) + lgamma(d) + hypot(d, d) + exp2(d) + copysign(d, -d),
      std::asin(d) + std::acosh(1 + d) + std::lgamma(d) + std::hypot(d, d) + std::exp2(d) - d);
  EXPECT_EQ(log(d) + sqrt(d) + sin(d) + cos(d) + tan(d) + tanh(d) + cbrt(d) + erf(d) + log1p(d),
            std::log(d) + std::sqrt(d) + std::sin(d) + std::cos(d) + std::tan(d) + std::tanh(d) +
                std::cbrt(d) + std::erf(d) + std::log1p(d));
  EXPECT_EQ(floor(d) + ceil(d) + round(d) + trunc(d) + expm1(d), 1 + std::expm1(d));
}

TEST(Names, FunctionsOfTensorsAreOurs) {
  Tensor t = ones({2, 2});
  EXPECT_TRUE((kIs<decltype(exp(t)), Tensor> && kIs<decltype(pow(t, 2)), Tensor>));
  EXPECT_TRUE((kIs<decltype(abs(t)), Tensor> && kIs<decltype(remainder(1, t)), Tensor>));
  EXPECT_EQ(max(t, 0).shape(), Shape({2}));
  EXPECT_EQ(min(t).rank(), 0);
  EXPECT_EQ(any(t).dtype(), DType::bool_);
  EXPECT_EQ(all(t, {0, 1}).dtype(), DType::bool_);
  EXPECT_EQ(less(t, 2).dtype(), DType::bool_);
  EXPECT_EQ(logical_and(isnan(t), equal(t, t)).dtype(), DType::bool_);
  EXPECT_EQ(round(t).shape(), Shape({2, 2}));
  EXPECT_EQ(iota(DType::i32, {2}, 0).shape(), Shape({2}));
  // <strings.h> also has index(), and <unistd.h> has sync(): functions overload each other.
  EXPECT_EQ(index(t, {range(0, 1), whole}).shape(), Shape({1, 2}));
  EXPECT_STREQ(index("a=b", '='), "=b");
}

TEST(Names, TheWaitIsNoSystemFunction) {
  Tensor t = ones({2}) * 2, u = t + 1, v = u + 1;
  block_until_ready(t);
  block_until_ready(std::pair(t, u), v);
  block_until_ready();
  EXPECT_NE(v.placement(), "recorded");
}

// The former name: sync() of <unistd.h> also takes no arguments, and the compiler rejects an
// unqualified call as ambiguous (tests/refused/plain_sync.cc). Qualify ours, or use a
// using-declaration.
TEST(Names, SyncIsOurs) {
  Tensor t = ones({2}) * 2, u = t + 1;
  sync(t);
  sync(t, u);
  sync(std::pair(t, u));
  meshard::sync();
  EXPECT_NE(u.placement(), "recorded");
  using meshard::sync;
  sync();
}

// A function and a constant with the same name do not overload, so no constant of ours has the name
// of a system function.
TEST(Names, OpenIsTheOneForFiles) {
  EXPECT_EQ(P("data", unconstrained).to_string(), "P(\"data\", unconstrained)");
  int file = open("/dev/null", O_RDONLY);
  EXPECT_GE(file, 0);
  close(file);
}

}  // namespace
