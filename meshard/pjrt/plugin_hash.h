// Checks the hash of a fetched plugin before it is loaded, against the record next to it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// A value: the contents of `PLUGIN.fetched`, with lines `sha256 HEX`, `size N`, `time
/// NANOSECONDS`, `owner UID`.
struct FetchedRecord {
  std::string sha256;
  std::int64_t size = 0;
  /// Time of the last modification.
  std::int64_t time = 0;
  std::int64_t owner = 0;

  /// @error data loss if it is not a record
  static Result<FetchedRecord> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const FetchedRecord&, const FetchedRecord&) = default;
};

/// How a plugin file compares with its record.
enum class FetchedState {
  /// There is no record: the plugin was not fetched, or by an older version.
  kNoRecord,
  /// Size, time and owner match the record.
  kUnchanged,
  /// One of them differs, but the computed hash matches the record.
  kHashChecked,
};

/// Compares a plugin file with its record. Reads the whole file only if its size, time or owner
/// changed, and then updates the record if it is writable.
/// @error data loss if the hash differs or the record is damaged; the message says how to fetch the
/// file again
Result<FetchedState> check_fetched_file(const std::string& path);

}  // namespace meshard::pjrt
