// Random tests that can be repeated with MESHARD_TEST_SEED=n.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>

namespace meshard {

/// The seed of this test run: MESHARD_TEST_SEED if set, otherwise fixed, so that a plain run is
/// repeatable. A nightly run sets MESHARD_TEST_SEED=random.
inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("MESHARD_TEST_SEED");
    if (text == nullptr) return std::uint64_t{20240229};
    if (std::string(text) == "random") return std::uint64_t{std::random_device{}()};
    return std::uint64_t{std::strtoull(text, nullptr, 10)};
  }();
  return seed;
}

/// A generator for one test. Prints the seed if the test fails.
struct TestRandom : std::mt19937_64 {
  TestRandom()
      : std::mt19937_64(test_seed()),
        trace_(__FILE__, __LINE__, "MESHARD_TEST_SEED=" + std::to_string(test_seed())) {}
  /// An integer in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(*this);
  }

 private:
  ::testing::ScopedTrace trace_;
};

}  // namespace meshard
