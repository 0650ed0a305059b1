// The headers of POSIX and of the C library, `using namespace std` and `using namespace meshard` in
// one file. Every function of ours that has the name of a system function is called without a
// qualification, for tensors and for what the system function takes.
#include <complex.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <math.h>
#include <meshard/meshard.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <iostream>
#include <iterator>
#include <numeric>
#include <optional>
#include <ranges>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

using namespace std;
using namespace meshard;

namespace {

template <class F>
void both(F f) {
  EXPECT_EQ(f(ones({2}) * 0.5).shape(), Shape({2}));
  EXPECT_EQ(f(0.5), f(0.5));
}

TEST(SystemNames, FunctionsOfOneNumber) {
  both([](auto x) { return abs(x); });
  both([](auto x) { return acos(x); });
  both([](auto x) { return acosh(x + 1); });
  both([](auto x) { return asin(x); });
  both([](auto x) { return asinh(x); });
  both([](auto x) { return atan(x); });
  both([](auto x) { return atanh(x); });
  both([](auto x) { return cbrt(x); });
  both([](auto x) { return ceil(x); });
  both([](auto x) { return cos(x); });
  both([](auto x) { return cosh(x); });
  both([](auto x) { return erf(x); });
  both([](auto x) { return erfc(x); });
  both([](auto x) { return exp(x); });
  both([](auto x) { return exp2(x); });
  both([](auto x) { return expm1(x); });
  both([](auto x) { return floor(x); });
  both([](auto x) { return lgamma(x); });
  both([](auto x) { return log(x); });
  both([](auto x) { return log10(x); });
  both([](auto x) { return log1p(x); });
  both([](auto x) { return log2(x); });
  both([](auto x) { return round(x); });
  both([](auto x) { return sin(x); });
  both([](auto x) { return sinh(x); });
  both([](auto x) { return sqrt(x); });
  both([](auto x) { return tan(x); });
  both([](auto x) { return tanh(x); });
  both([](auto x) { return trunc(x); });
  both([](auto x) { return isnan(x); });
  both([](auto x) { return isinf(x); });
  both([](auto x) { return isfinite(x); });
}

TEST(SystemNames, FunctionsOfTwoNumbers) {
  both([](auto x) { return atan2(x, 2.0); });
  both([](auto x) { return copysign(x, -1.0); });
  both([](auto x) { return fmod(x, 0.3); });
  both([](auto x) { return hypot(x, 2.0); });
  both([](auto x) { return nextafter(x, 1.0); });
  both([](auto x) { return pow(x, 2.0); });
  both([](auto x) { return remainder(x, 0.3); });
}

TEST(SystemNames, OtherFunctions) {
  Tensor x = ones({2, 3});
  EXPECT_EQ(index(x, {0}).shape(), Shape({3}));
  EXPECT_STREQ(index("a=b", '='), "=b");
  sync(x);
  meshard::sync();  // sync() alone could be either function: see tests/refused/plain_sync.cc
  EXPECT_EQ(conj(x).shape(), x.shape());
  EXPECT_EQ(conj(std::complex<double>(1, 2)), std::complex<double>(1, -2));
  EXPECT_EQ(max(x, 0).shape(), Shape({3}));
  EXPECT_EQ(max(2, 3) + min(2, 3), 5);
  EXPECT_EQ(clip(x, 0, 1).shape(), x.shape());
  EXPECT_EQ(sort(x).shape(), x.shape());
  std::vector<int> list{2, 1};
  sort(list.begin(), list.end());
  EXPECT_EQ(list[0], 1);
  EXPECT_EQ(fabs(-1.0) + tgamma(1.0) + ldexp(1.0, 0), 3);
}

// Names of the system that are none of ours.
TEST(SystemNames, OfTheSystemAlone) {
  int file = open("/dev/null", O_RDONLY);
  EXPECT_GE(file, 0);
  fd_set none_ready;
  FD_ZERO(&none_ready);
  timeval no_time{0, 0};
  EXPECT_EQ(select(0, &none_ready, nullptr, nullptr, &no_time), 0);
  EXPECT_NE(signal(SIGUSR1, SIG_DFL), SIG_ERR);
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  char byte = 1;
  EXPECT_EQ(send(ends[0], &byte, 1, 0), 1);
  EXPECT_EQ(recv(ends[1], &byte, 1, 0), 1);
  for (int end : {file, ends[0], ends[1]}) close(end);
}

// Constants and types of ours that users write without a qualification.
TEST(SystemNames, ConstantsAndTypes) {
  Mesh mesh({{"x", 1}}, {0});
  Sharding sharding(mesh, P(unconstrained, none, 0));
  Placements placements{Replicate()};
  EXPECT_EQ(placements.sharding(mesh, 1).spec(), P(none));
  Tensor x = ones({2, 3});
  EXPECT_EQ((x[{ellipsis, newaxis, whole, range(0, 2)}].shape()), Shape({1, 2, 2}));
  ostringstream out;
  out << sharding << " " << mesh << " " << Shard(1);
  EXPECT_EQ(out.str(), "Sharding(mesh<x=1>, P(unconstrained, none, \"x\")) mesh<x=1> Shard(dim=1)");
}

}  // namespace
