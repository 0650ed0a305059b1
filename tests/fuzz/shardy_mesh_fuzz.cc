#include "meshard/mesh/shardy_text.h"
#include "tests/fuzz/byte_source.h"

// What Shardy's text says of a mesh prints again as Shardy's text of an equal mesh.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Result<Mesh> mesh = parse_shardy_mesh(text);
  if (!mesh) return 0;
  Result<Mesh> plain = parse_shardy_mesh(shardy_text(*mesh));
  fuzz_check(plain.ok() && plain->layout() == mesh->layout(), "parse(print)", text);
  return 0;
}
