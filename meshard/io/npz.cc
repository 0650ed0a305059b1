#include "meshard/io/npz.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/io/internal/npy_bytes.h"

namespace meshard::io {
namespace {

// Records of a zip archive (PKWARE's APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16).
constexpr std::string_view kLocal = "PK\x03\x04", kCentral = "PK\x01\x02", kEnd = "PK\x05\x06";
constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22;
constexpr std::uint32_t kInExtra = 0xFFFFFFFF;  // the size is in the extra field for 64 bits
constexpr std::string_view kSuffix = ".npy";

Error bad_npz(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kInvalidArgument, cat("[npz] ", path, ": ", what));
}

std::uint64_t little(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

void append_little(std::string& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
}

// The checksum of zip: CRC-32 with the polynomial 0xEDB88320.
std::uint32_t crc32(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xFFFFFFFF;
  for (char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

// One entry of the directory at the end of an archive.
struct ZipEntry {
  std::string name;
  std::uint64_t method = 0, crc = 0, size = 0, offset = 0;
};

// Reads the entry at `at` and moves past it; none if the bytes are damaged.
std::optional<ZipEntry> next_entry(std::string_view bytes, std::size_t& at) {
  if (bytes.size() < at + kCentralSize || bytes.substr(at, 4) != kCentral) return std::nullopt;
  std::size_t name = little(bytes, at + 28, 2), extra = little(bytes, at + 30, 2),
              comment = little(bytes, at + 32, 2);
  if (bytes.size() - at - kCentralSize < name + extra + comment) return std::nullopt;
  ZipEntry entry{std::string(bytes.substr(at + kCentralSize, name)), little(bytes, at + 10, 2),
                 little(bytes, at + 16, 4), little(bytes, at + 24, 4), little(bytes, at + 42, 4)};
  if (entry.size == kInExtra || entry.offset == kInExtra) return std::nullopt;  // 4 GiB
  at += kCentralSize + name + extra + comment;
  return entry;
}

// The bytes of an entry that is stored as it is; none if they are damaged.
std::optional<std::string_view> stored_bytes(std::string_view bytes, const ZipEntry& entry) {
  if (entry.offset > bytes.size() || bytes.size() - entry.offset < kLocalSize ||
      bytes.substr(entry.offset, 4) != kLocal)
    return std::nullopt;
  std::size_t begin = entry.offset + kLocalSize + little(bytes, entry.offset + 26, 2) +
                      little(bytes, entry.offset + 28, 2);
  if (begin > bytes.size() || bytes.size() - begin < entry.size) return std::nullopt;
  std::string_view data = bytes.substr(begin, entry.size);
  return crc32(data) == entry.crc ? std::optional(data) : std::nullopt;
}

// What a local header and a directory entry have in common.
std::string description(const std::string& name, std::string_view data) {
  std::string out;
  for (std::uint64_t each : {20, 0, 0, 0, 0x21}) append_little(out, each, 2);  // dated 1980
  append_little(out, crc32(data), 4);
  append_little(out, data.size(), 4);
  append_little(out, data.size(), 4);
  append_little(out, name.size(), 2);
  append_little(out, 0, 2);
  return out;
}

}  // namespace

Result<NamedArrays> load_npz(const std::string& path) {
  MESHARD_ASSIGN_OR_RETURN(std::string file, read_whole_file(path));
  const std::string_view bytes = file;
  std::size_t end = bytes.rfind(kEnd);
  if (!bytes.starts_with("PK") || end == std::string_view::npos || bytes.size() - end < kEndSize)
    return bad_npz(path, "not a .npz file");
  std::size_t count = little(bytes, end + 10, 2), at = little(bytes, end + 16, 4);
  NamedArrays arrays;
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<ZipEntry> entry = next_entry(bytes, at);
    if (!entry) return bad_npz(path, "its directory is damaged, or has arrays of 4 GiB or more");
    std::string name = entry->name;
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    if (entry->method != 0)
      return Error(
          ErrorCode::kUnimplemented,
          cat("[npz] ", path, ": \"", name, "\" is compressed; write the file with numpy.savez"));
    std::optional<std::string_view> data = stored_bytes(bytes, *entry);
    if (!data) return bad_npz(path, cat("\"", name, "\" is damaged"));
    MESHARD_ASSIGN_OR_RETURN(HostArray array,
                             internal::npy_from_bytes(*data, cat(path, ", ", name)));
    arrays.emplace_back(std::move(name), std::move(array));
  }
  return arrays;
}

Result<void> save_npz(const std::string& path, const NamedArrays& arrays) {
  std::string out, directory;
  for (const auto& [plain, array] : arrays) {
    std::string name = cat(plain, kSuffix);
    MESHARD_ASSIGN_OR_RETURN(std::string data, internal::npy_bytes(array, path));
    std::size_t offset = out.size();
    if (offset + data.size() >= std::numeric_limits<std::uint32_t>::max())
      return bad_npz(path, "the arrays take 4 GiB or more: write a safetensors file");
    std::string described = description(name, data);
    append(out, cat(kLocal, described, name, data));
    append(directory, cat(kCentral, std::string{20, 0}, described));
    for (std::size_t width : {2, 2, 2, 4}) append_little(directory, 0, width);
    append_little(directory, offset, 4);
    append(directory, name);
  }
  std::size_t at = out.size();
  append(out, cat(directory, kEnd));
  for (std::uint64_t each : {std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{arrays.size()},
                             std::uint64_t{arrays.size()}})
    append_little(out, each, 2);
  append_little(out, directory.size(), 4);
  append_little(out, at, 4);
  append_little(out, 0, 2);
  return write_whole_file(path, out);
}

}  // namespace meshard::io
