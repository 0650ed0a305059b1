#include "meshard/pjrt/wire.h"

#include <cstring>

#include "meshard/base/cat.h"

namespace meshard::pjrt {
namespace {

enum WireType { kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Takes a varint off the front; false if the bytes are damaged.
bool take_varint(std::string_view& rest, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (rest.empty()) return false;
    auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;  // more than 64 bits
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

void WireWriter::put_varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void WireWriter::put_tag(int field, int type) {
  put_varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
}

void WireWriter::add_varint(int field, std::uint64_t value) {
  put_tag(field, kVarint);
  put_varint(value);
}

void WireWriter::add_bytes(int field, std::string_view bytes) {
  put_tag(field, kBytes);
  put_varint(bytes.size());
  bytes_.append(bytes);
}

void WireWriter::add_double(int field, double value) {
  put_tag(field, kEightBytes);
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
}

void WireWriter::add_field(const WireField& field) {
  if (field.type == kVarint) return add_varint(field.number, field.value);
  if (field.type == kBytes) return add_bytes(field.number, field.bytes);
  put_tag(field.number, field.type);
  bytes_.append(field.bytes);
}

double WireField::as_double() const {
  double result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty() || !ok_) return std::nullopt;
  ok_ = false;  // until the field is complete
  std::uint64_t tag;
  if (!take_varint(rest_, tag) || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF) return std::nullopt;
  WireField field;
  field.number = static_cast<int>(tag >> 3);
  field.type = static_cast<int>(tag & 7);
  std::uint64_t size = 0;
  switch (field.type) {
    case kVarint:
      if (!take_varint(rest_, field.value)) return std::nullopt;
      break;
    case kEightBytes: size = 8; break;
    case kFourBytes: size = 4; break;
    case kBytes:
      if (!take_varint(rest_, size)) return std::nullopt;
      break;
    default: return std::nullopt;  // groups are not used
  }
  if (size > rest_.size()) return std::nullopt;
  field.bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  if (field.type == kEightBytes || field.type == kFourBytes)
    field.value = little_endian(field.bytes);
  ok_ = true;
  return field;
}

Error damaged(std::string_view what) {
  return Error(ErrorCode::kDataLoss, cat("[hlo] the bytes of ", what, " are damaged"));
}

bool append_numbers(const WireField& field, std::vector<std::int64_t>& to) {
  if (field.type != kBytes) {
    to.push_back(field.as_int());
    return true;
  }
  for (std::string_view rest = field.bytes; !rest.empty();) {
    std::uint64_t value = 0;
    if (!take_varint(rest, value)) return false;
    to.push_back(static_cast<std::int64_t>(value));
  }
  return true;
}

}  // namespace meshard::pjrt
