#include "meshard/report/json.h"
#include "tests/fuzz/byte_source.h"

// Any text is a report or rejected as damaged. What was read can be written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Result<ProgramReport> report = read_report(text);
  if (!report) {
    fuzz_check(report.error().code() == ErrorCode::kDataLoss, "the error is data loss", text);
    return 0;
  }
  std::string written = to_json(*report);
  Result<ProgramReport> again = read_report(written);
  fuzz_check(again.ok() && to_json(*again) == written, "read again", text);
  return 0;
}
