#include "meshard/base/packed_fields.h"

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"

namespace meshard::internal {
namespace {

// Texts up to this size are written once. In a text's place is 0 and its size if it is new or
// longer, otherwise 1 + the number of the earlier one.
constexpr std::size_t kMostShared = 256;

}  // namespace

void PackedWriter::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void PackedWriter::text(std::string_view text) {
  if (text.size() <= kMostShared) {
    auto [found, is_new] = texts_.emplace(text, texts_.size());
    if (!is_new) return number(found->second + 1);
  }
  number(0);
  number(text.size());
  bytes_ += text;
}

std::uint64_t PackedReader::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    std::uint64_t bits = byte & 0x7F;
    if (shift == 63 && bits > 1) break;
    value |= bits << shift;
    if (byte < 0x80) return value;
  }
  fail();
  return 0;
}

std::size_t PackedReader::count() {
  std::uint64_t count = number();
  if (count <= rest_.size()) return static_cast<std::size_t>(count);
  fail();
  return 0;
}

std::string_view PackedReader::text() {
  std::uint64_t known = number();
  if (known > texts_.size()) {
    fail();
    return {};
  }
  if (known > 0) return texts_[static_cast<std::size_t>(known) - 1];
  std::size_t size = count();
  std::string_view text = rest_.substr(0, size);
  rest_.remove_prefix(size);
  if (size <= kMostShared && !failed_) texts_.push_back(text);
  return text;
}

void PackedReader::fail() {
  failed_ = true;
  rest_ = {};
}

std::uint64_t packed_format(const std::string& description) { return fingerprint(description).low; }

Error not_packed(std::string_view what) {
  return Error(ErrorCode::kDataLoss,
               cat("[", what, "] the bytes are damaged, or another version of meshard wrote them"));
}

}  // namespace meshard::internal
