// usage: record_partitioned FOLDER PROGRAM DEVICES
// Writes the partitioned module of one of the test programs, as the CPU plugin dumps it, to
// FOLDER/PROGRAM.DEVICES.hlo.bin (tests/golden/partitioned/README.md).
#include <cstdio>
#include <cstdlib>

#include "meshard/base/whole_file.h"
#include "meshard/partitioned/partition.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/partitioned/programs.h"

int main(int argc, char** argv) {
  using namespace meshard;
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s FOLDER PROGRAM DEVICES\n", argv[0]);
    return 2;
  }
  try {
    int devices = std::atoi(argv[3]);
    pjrt::NamedValue option{"cpu_device_count", std::int64_t{devices}};
    pjrt::Plugin plugin = pjrt::Plugin::load(pjrt::find_plugins().first("cpu").value()).value();
    pjrt::Client client = pjrt::Client::create(plugin, {&option, 1}).value();
    pjrt::CompileOptions options;
    options.num_partitions = devices;
    std::string module =
        partitioned_module(client, sharded_program(argv[2], devices).text, options).value();
    write_whole_file(cat(argv[1], "/", argv[2], ".", devices, ".hlo.bin"), module).value();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
