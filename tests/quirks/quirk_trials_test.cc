// Every row of the table: its program is right, and its switch changes what is compiled.
#include <gmock/gmock.h>

#include "meshard/runtime/internal/load_program.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/quirks/trial.h"

namespace meshard::quirk_trials {
namespace {

using QuirkTrials = OnPlugin;

std::vector<Quirk> all_quirks() {
  std::vector<Quirk> all;
  for (std::size_t i = 0; i < quirk_table().size(); ++i) all.push_back(static_cast<Quirk>(i));
  return all;
}

TEST_F(QuirkTrials, AreRight) {
  for (Quirk quirk : all_quirks()) {
    SCOPED_TRACE(row_of(quirk).name);
    EXPECT_TRUE(is_right(trial_of(quirk)));
    if (row_of(quirk).effect == QuirkEffect::kLaunch) restart_runtime();
  }
}

TEST_F(QuirkTrials, HaveOtherTextsWithoutTheQuirk) {
  for (Quirk quirk : all_quirks()) {
    const QuirkRow& row = row_of(quirk);
    if (row.effect != QuirkEffect::kModule) continue;
    Trial trial = trial_of(quirk);
    QuirkSet all = quirks_of_table(row.platforms);
    EXPECT_NE(text_of(trial, all), text_of(trial, all.without(quirk))) << row.name;
  }
}

struct Switched {
  explicit Switched(const std::string& changes) { set(changes.c_str()); }
  ~Switched() { set(nullptr); }
  static void set(const char* changes) {
    changes ? ::setenv("MESHARD_QUIRKS", changes, 1) : ::unsetenv("MESHARD_QUIRKS");
    restart_runtime();
  }
};

TEST_F(QuirkTrials, HaveOtherOptionsWithoutTheQuirk) {
  auto override_of = [](const QuirkRow& row) {
    auto options = compile_options_for(runtime_client(), LoweredModule(), {0, 1});
    return options.overrides.count(std::string(row.option_off));
  };
  for (Quirk quirk : all_quirks()) {
    const QuirkRow& row = row_of(quirk);
    if (row.effect != QuirkEffect::kCompile) continue;
    EXPECT_EQ(override_of(row), 1u) << row.name;
    Switched off("-" + std::string(row.name));
    EXPECT_EQ(override_of(row), 0u) << row.name;
  }
}

// A program is compiled anew, in memory and from disk, if a quirk that changes it is turned off.
TEST_F(QuirkTrials, SwitchesArePartOfTheKeysOfPrograms) {
  auto numbers = [] { return from_host(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {8}); };
  auto f = jit([](const Tensor& y) { return maximum(y, 3); });
  auto key = [&] {
    LoweredModule lowered;
    lowered.text = "module";
    return DiskCache::key_of(runtime_client(), lowered,
                             compile_options_for(runtime_client(), lowered, {0}));
  };
  (void)f(numbers()).to_vector<float>();
  std::string before = key().program;
  Switched off("-fast-min-max");
  EXPECT_NE(key().program, before);
  restart();
  EXPECT_THAT(f(numbers()).to_vector<float>(), testing::ElementsAre(3, 3, 3, 3, 4, 5, 6, 7));
  EXPECT_EQ(done().compiles, 1u);
}

TEST_F(QuirkTrials, UnknownNamesAreErrorsOfTheClient) {
  try {
    Switched wrong("-windowfills");
    (void)runtime_client();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("\"window-fills\""));
  }
}

}  // namespace
}  // namespace meshard::quirk_trials
