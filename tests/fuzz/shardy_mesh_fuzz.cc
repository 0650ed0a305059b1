#include "meshard/stablehlo/shardy_text.h"
#include "tests/fuzz/byte_source.h"

// A mesh that is parsed from Shardy's text prints as the Shardy text of an equal mesh.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Result<Mesh> mesh = parse_shardy_mesh(text);
  if (!mesh) return 0;
  Result<Mesh> plain = parse_shardy_mesh(shardy_text(*mesh));
  fuzz_check(plain.ok() && plain->layout() == mesh->layout(), "parse(print)", text);
  return 0;
}
