#include "meshard/io/internal/checkpoint_index.h"
#include "tests/fuzz/byte_source.h"

// Any bytes are read or rejected. The parts of a tensor that is read are inside it and have as many
// elements as it has, file names have no folders, and an index of ours can be written and read
// again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  using io::internal::CheckpointIndex;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Result<CheckpointIndex> index = CheckpointIndex::parse(bytes, "index");
  if (!index) {
    fuzz_check(!index.error().message().empty(), "an error has a message", bytes);
    return 0;
  }
  auto is_plain = [](const std::string& file) {
    return !file.empty() && file != ".." && file.find('/') == std::string::npos;
  };
  for (const auto& [name, file] : index->whole) fuzz_check(is_plain(file), "a plain name", bytes);
  for (const auto& [name, tensor] : index->split) {
    std::int64_t elements = 0;
    for (const auto& [text, part] : tensor.parts) {
      fuzz_check(is_plain(part.file), "a plain name", bytes);
      check_box(part.box, tensor.type.shape);  // throws if it is outside
      elements += box_shape(part.box).size();
    }
    fuzz_check(elements == tensor.type.shape.size(), "all elements", bytes);
  }
  if (!index->is_ours) return 0;
  Result<CheckpointIndex> again = CheckpointIndex::parse(index->to_json(), "index");
  fuzz_check(again.ok() && *again == *index, "read again", bytes);
  return 0;
}
