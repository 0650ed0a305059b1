#include "meshard/pjrt/compile_options.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

namespace fs = std::filesystem;

CompileOptions two_by_three() {
  CompileOptions options;
  options.num_replicas = 2;
  options.num_partitions = 3;
  options.device_assignment = {10, 11, 12, 200, 201, 202};
  options.propagate_to_outputs = {true, false};
  options.propagate_to_parameters = {false};
  options.memory_fitting_level = 29;
  options.alias_passthrough_parameters = true;
  options.overrides["a_bool"] = true;
  options.overrides["a_double"] = 0.5;
  options.overrides["a_number"] = std::int64_t{-1};
  options.overrides["a_text"] = "x";
  return options;
}

// The bytes as protoc prints them; empty without protoc.
std::string decode(const std::string& bytes) {
  if (std::system("protoc --version > /dev/null 2>&1") != 0) return "";
  fs::path source = fs::path(__FILE__).parent_path();
  fs::path file =
      fs::temp_directory_path() /
      cat("meshard_options_", ::testing::UnitTest::GetInstance()->random_seed(), "_", bytes.size());
  std::ofstream(file, std::ios::binary) << bytes;
  std::string command = cat("protoc --decode=CompileOptions -I '", source.string(),
                            "' compile_options_test.proto < '", file.string(), "' 2>&1");
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  for (int c; (c = std::fgetc(pipe.get())) != EOF;) text.push_back(static_cast<char>(c));
  fs::remove(file);
  return text;
}

TEST(CompileOptions, ProtocReadsTheBytes) {
  std::string text = decode(two_by_three().serialize());
  if (text.empty()) GTEST_SKIP() << "protoc is not installed";
  EXPECT_EQ(text, R"(executable_build_options {
  num_replicas: 2
  num_partitions: 3
  use_spmd_partitioning: true
  device_assignment {
    replica_count: 2
    computation_count: 3
    computation_devices {
      replica_device_ids: 10
      replica_device_ids: 200
    }
    computation_devices {
      replica_device_ids: 11
      replica_device_ids: 201
    }
    computation_devices {
      replica_device_ids: 12
      replica_device_ids: 202
    }
  }
  alias_passthrough_params: true
  propagation_to_output: true
  propagation_to_output: false
  propagation_to_parameters: false
  use_shardy_partitioner: true
  memory_fitting_level: 29
}
env_option_overrides {
  key: "a_bool"
  value {
    bool_field: true
  }
}
env_option_overrides {
  key: "a_double"
  value {
    double_field: 0.5
  }
}
env_option_overrides {
  key: "a_number"
  value {
    int_field: -1
  }
}
env_option_overrides {
  key: "a_text"
  value {
    string_field: "x"
  }
}
)");
}

TEST(CompileOptions, EqualOptionsGiveEqualBytes) {
  EXPECT_EQ(two_by_three().serialize(), two_by_three().serialize());
  CompileOptions other = two_by_three();
  other.use_shardy = false;
  EXPECT_NE(other, two_by_three());
  EXPECT_NE(other.serialize(), two_by_three().serialize());
}

TEST(CompileOptions, UnsoundOnesAreNamed) {
  EXPECT_TRUE(two_by_three().check().ok());
  auto broken = [](auto change, std::vector<std::string> parts) {
    CompileOptions options = two_by_three();
    change(options);
    return throws_error([&] { options.check().value(); }, ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(broken([](auto& o) { o.num_replicas = 0; }, {"num_replicas", "got 0"}));
  EXPECT_TRUE(broken([](auto& o) { o.num_partitions = 1 << 20; }, {"num_partitions"}));
  EXPECT_TRUE(broken([](auto& o) { o.device_assignment.pop_back(); },
                     {"5 entries", "2 replicas x 3 partitions need 6"}));
  EXPECT_TRUE(broken([](auto& o) { o.device_assignment[5] = 10; }, {"device id 10", "twice"}));
  EXPECT_TRUE(broken([](auto& o) { o.device_assignment[5] = -7; }, {"-7"}));
  EXPECT_TRUE(broken([](auto& o) { o.use_spmd_partitioning = false; }, {"use_spmd_partitioning"}));
  EXPECT_TRUE(broken([](auto& o) { o.portable = true; }, {"portable", "not 6"}));
  EXPECT_TRUE(broken([](auto& o) { o.propagate_to_parameters = {true, true}; }, {"2 entries"}));
}

}  // namespace
}  // namespace meshard::pjrt
