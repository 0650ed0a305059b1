#include "meshard/io/safetensors.h"
#include "tests/fuzz/byte_source.h"

// Any bytes are read or rejected. Tensors that are read are inside the file and tile its data, and
// can be written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Result<io::SafetensorsHeader> header = io::read_safetensors_header(bytes, "file");
  if (!header) {
    fuzz_check(!header.error().message().empty(), "an error has a message", bytes);
    return 0;
  }
  std::uint64_t at = 0;
  for (const io::SafetensorsEntry& tensor : header->tensors) {
    fuzz_check(tensor.begin == at && tensor.end >= at, "no gap and no overlap", bytes);
    fuzz_check(static_cast<std::uint64_t>(tensor.type.bytes()) == tensor.end - tensor.begin,
               "bytes of the type", bytes);
    at = tensor.end;
  }
  fuzz_check(header->data_begin + at == size, "all of the file", bytes);
  std::vector<io::SafetensorsEntry> entries = header->tensors;
  Result<std::string> text = io::write_safetensors_header(entries, header->metadata);
  fuzz_check(text.ok(), "what was read can be written", bytes);
  Result<io::SafetensorsHeader> again =
      io::read_safetensors_header(*text + std::string(at, '\0'), "file");
  fuzz_check(again.ok() && again->tensors.size() == header->tensors.size(), "read again", bytes);
  return 0;
}
