#include "meshard/base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace meshard {
namespace {

int twice(FunctionRef<int(int)> f) { return f(f(1)); }
int tripled(int value) { return 3 * value; }

TEST(FunctionRef, CallsLambdasFunctionsAndConstObjects) {
  int calls = 0;
  EXPECT_EQ(twice([&](int value) { return ++calls, value + 4; }), 9);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(twice(tripled), 9);
  struct Negate {
    int operator()(int value) const { return -value; }
  };
  const Negate negate;
  EXPECT_EQ(twice(negate), 1);
}

TEST(FunctionRef, PassesReferencesAndMovesValues) {
  auto fill = [](std::string& text, std::unique_ptr<int> number) {
    text = std::to_string(*number);
  };
  FunctionRef<void(std::string&, std::unique_ptr<int>)> f = fill;
  std::string text;
  f(text, std::make_unique<int>(7));
  EXPECT_EQ(text, "7");
  FunctionRef<void(std::string&, std::unique_ptr<int>)> copy = f;  // refers to `fill`, not to f
  copy(text, std::make_unique<int>(8));
  EXPECT_EQ(text, "8");
}

}  // namespace
}  // namespace meshard
