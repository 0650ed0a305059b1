#include "meshard/target/compile_job.h"

#include <gtest/gtest.h>

#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

CompileJob full_job() {
  CompileJob job;
  job.plugin = "/a/plugin.so";
  CompileRequest& request = job.request;
  request.module = std::string("module\0", 7);
  request.target = Target::parse("v5e:4x4*2").value();
  request.options.num_partitions = 3;
  request.options.device_assignment = {200000, 0, 100001};
  request.options.use_shardy = false;
  request.options.propagate_to_parameters = {true, false, false};
  request.options.propagate_to_outputs = {false, true};
  request.as_jax = true;
  request.options.overrides = {
      {"a", std::string("text")}, {"b", true}, {"c", std::int64_t{-7}}, {"d", 0.25}};
  job.dump_folder = "/tmp/x";
  return job;
}

TEST(CompileJob, RoundTrip) {
  EXPECT_EQ(CompileJob::deserialize(full_job().serialize()).value(), full_job());
  EXPECT_EQ(CompileJob::deserialize(CompileJob().serialize()).value(), CompileJob());
  EXPECT_EQ(CompileJob::deserialize(full_job().serialize()).value().request.target.plugin_options(),
            full_job().request.target.plugin_options());
}

TEST(CompileJob, CutsAndDamageAreErrors) {
  std::string bytes = full_job().serialize();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(CompileJob::deserialize(std::string_view(bytes).substr(0, size)).ok()) << size;
  TestRandom random;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = bytes;
    damaged[static_cast<std::size_t>(random.between(0, std::ssize(bytes) - 1))] =
        static_cast<char>(random.between(0, 255));
    (void)CompileJob::deserialize(damaged);
  }
}

TEST(CompileJob, AnswersKeepErrors) {
  Result<Compiled> error = Error(ErrorCode::kUnimplemented, "no such op\nat line 3");
  EXPECT_TRUE(throws_error([&] { deserialize_answer(serialize_answer(error)).value(); },
                           ErrorCode::kUnimplemented, {"no such op\nat line 3"}));
  Compiled compiled;
  compiled.optimized_program = "program";
  EXPECT_EQ(deserialize_answer(serialize_answer(compiled)).value().optimized_program, "program");
  for (std::string_view bytes : {"", "\x0a", "\x18\x01", "\x12\x7f", "\x1a\x01x"})
    EXPECT_TRUE(throws_error([&] { deserialize_answer(bytes).value(); }, ErrorCode::kDataLoss, {}));
}

}  // namespace
}  // namespace meshard
