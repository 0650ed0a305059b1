#include "meshard/partitioned/partition.h"
#include <gtest/gtest.h>
#include "meshard/base/whole_file.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/partitioned/programs.h"
namespace meshard {
TEST(Dump, All) {
  pjrt::NamedValue option{"cpu_device_count", std::int64_t{8}};
  auto client = pjrt::Client::create(pjrt::Plugin::load(pjrt::find_plugins().first("cpu").value()).value(), {&option, 1}).value();
  for (int n : {2, 4, 8})
  for (auto& p : sharded_programs(n)) {
    pjrt::CompileOptions options; options.num_partitions = n;
    auto m = partitioned_module(client, p.text, options);
    printf("%s %d: %s\n", p.name.c_str(), n, m.ok() ? "ok" : m.error().what());
    if (m.ok()) write_whole_file(std::string("/tmp/rw/") + p.name + "." + std::to_string(n) + ".hlo", *m).value();
    else write_whole_file(std::string("/tmp/rw/") + p.name + "." + std::to_string(n) + ".mlir", p.text).value();
  }
}
}
