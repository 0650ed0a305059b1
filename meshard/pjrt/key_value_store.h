// What the processes of a plugin exchange through the program that created its clients.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// The store behind the key-value callbacks of PJRT_Client_Create: plugins that communicate between
/// processes publish there which devices they have, and meet there before they connect. Keys and
/// values may hold any bytes. Implementations are thread-safe; the plugin calls them from several
/// threads, as long as its client exists.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  /// Stores a value, instead of the one that the key may have.
  virtual Result<void> put(std::string_view key, std::string_view value) = 0;
  /// The value of a key; waits until a process puts it. A negative limit never passes.
  /// @error deadline exceeded, naming the key
  virtual Result<std::string> get(std::string_view key, std::chrono::milliseconds limit) = 0;
  /// The value of a key, without waiting; empty if it has none.
  virtual Result<std::optional<std::string>> try_get(std::string_view key) = 0;
};

}  // namespace meshard::pjrt
