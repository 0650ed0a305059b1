#include "meshard/base/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace meshard {
namespace {

TEST(Advice, IsGivenOnceForEachTopicAndLine) {
  std::vector<std::string> heard;
  set_advice_handler([&](const Advice& advice) {
    heard.push_back(advice.to_string());
    (void)all_advice();  // a handler may query advice
  });
  internal::advise({"test.a", "[test] first", {"dir/user.cc", "f", 7}});
  internal::advise({"test.a", "[test] again", {"dir/user.cc", "f", 7}});
  internal::advise({"test.a", "[test] elsewhere", {"dir/user.cc", "f", 8}});
  internal::advise({"test.b", "[test] another topic", {"dir/user.cc", "f", 7}});
  set_advice_handler(nullptr);
  internal::advise({"test.c", "[test] heard by nobody", {}});
  EXPECT_EQ(heard,
            (std::vector<std::string>{"user.cc:7: [test] first", "user.cc:8: [test] elsewhere",
                                      "user.cc:7: [test] another topic"}));
  std::vector<Advice> all = all_advice();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Advice& each) { return each.topic.starts_with("test."); }),
            4);
  EXPECT_EQ(all.back().to_string(), "[test] heard by nobody");
}

}  // namespace
}  // namespace meshard
