#include "meshard/stablehlo/module_reader.h"
#include "tests/fuzz/byte_source.h"

// Any bytes are read or rejected. The result cannot describe more than its bytes can hold: an
// argument takes at least one byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Result<stablehlo::ModuleFacts> facts = stablehlo::read_module(bytes);
  if (!facts) {
    fuzz_check(!facts.error().message().empty(), "an error has a message", bytes);
    return 0;
  }
  fuzz_check(facts->arguments.size() <= size && facts->meshes.size() <= size, "sizes", bytes);
  for (const stablehlo::ModuleMesh& mesh : facts->meshes)
    fuzz_check(mesh.size() >= 0, "devices of a mesh", bytes);
  return 0;
}
