#include "meshard/layout/algebra.h"
#include "tests/fuzz/parse_print.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshard::check_parse_print(data, size, meshard::Tiler::parse);
}
