// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/train/events.h"

#include <bit>
#include <chrono>
#include <filesystem>

namespace llm {

using namespace meshard;

namespace {

// Numbers in little-endian order, and fields of protocol buffers
// (https://protobuf.dev/programming-guides/encoding).

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes += static_cast<char>(number);
}

constexpr std::uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
std::string tag(std::uint64_t field, std::uint64_t kind) { return varint(field << 3 | kind); }
std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return cat(tag(field, kBytes), varint(bytes.size()), bytes);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string begun_event() {
  return cat(tag(1, kFixed64), little_endian(std::bit_cast<std::uint64_t>(now())));
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

Result<EventFile> EventFile::create(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // Runs that are resumed within a second have files of their own.
  std::filesystem::path path;
  for (int number = 0; path.empty() || std::filesystem::exists(path); ++number)
    path = std::filesystem::path(folder) /
           cat("events.out.tfevents.", static_cast<std::int64_t>(now()), ".meshard.", number);
  EventFile file(std::ofstream(path, std::ios::binary));
  MESHARD_RETURN_IF_ERROR(file.write(begun_event() + bytes_field(3, "brain.Event:2")));
  return file;
}

Result<void> EventFile::add(std::int64_t step,
                            std::span<const std::pair<std::string, float>> values) {
  std::string summary;
  for (const auto& [name, value] : values)
    summary += bytes_field(1, bytes_field(1, name) + tag(2, kFixed32) +
                                  little_endian(std::bit_cast<std::uint32_t>(value)));
  return write(cat(begun_event(), tag(2, kVarint), varint(static_cast<std::uint64_t>(step)),
                   bytes_field(5, summary)));
}

Result<void> EventFile::write(std::string_view event) {
  std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  file_ << length << little_endian(masked(crc32c(length))) << event
        << little_endian(masked(crc32c(event)));
  if (!file_.flush())
    return Error(ErrorCode::kUnavailable, "[llm] cannot write the event file of TensorBoard");
  return {};
}

}  // namespace llm
