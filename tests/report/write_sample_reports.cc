// write_sample_reports FOLDER: writes the sample reports as NAME.json and NAME.html, for tests that
// read files, and the schema of their fields as schema.
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "meshard/base/error.h"
#include "meshard/report/html.h"
#include "meshard/report/json.h"
#include "meshard/report/sample_report_testutil.h"
#include "tests/report/report_schema.h"

namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw meshard::Error(meshard::ErrorCode::kUnavailable, "cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace meshard;
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_sample_reports FOLDER\n");
    return 2;
  }
  std::string folder = argv[1];
  const std::pair<const char*, ProgramReport> reports[] = {
      {"sample", ProgramReport(sample_parts())},    {"gpu", ProgramReport(sample_gpu_parts(8))},
      {"large", ProgramReport(large_parts(20000))}, {"hostile", ProgramReport(hostile_parts())},
      {"empty", ProgramReport({.name = "empty"})},
  };
  for (const auto& [name, report] : reports) {
    write(folder + "/" + name + ".json", to_json(report));
    write(folder + "/" + name + ".html", to_html(report));
  }
  write(folder + "/schema", ReportSchema::text());
  return 0;
}
