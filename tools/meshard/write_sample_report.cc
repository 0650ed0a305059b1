// Writes reports for the checks of `meshard diff` and `meshard expect`: sample_parts(), and with
// `changed` the same with other collectives and memory, and another sharding of an argument.
#include <cstdio>
#include <string_view>

#include "meshard/report/json.h"
#include "meshard/report/sample_report_testutil.h"
#include "tools/meshard/write_file.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  meshard::ProgramReport::Parts parts = meshard::sample_parts();
  if (argc > 2 && std::string_view(argv[2]) == "changed") {
    parts.collectives.pop_back();
    parts.logical_collectives.pop_back();
    parts.memory->arguments += 1024;
    parts.arguments[0].sharding = meshard::Sharding::replicated(
        parts.arguments[0].sharding->mesh(), parts.arguments[0].sharding->rank());
  }
  meshard::tool::write_file(argv[1], meshard::to_json(meshard::ProgramReport(parts)));
  return 0;
}
