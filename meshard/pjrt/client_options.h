// Options of a client, checked against what plugins are known to take.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"

namespace meshard::pjrt {

/// One option that some plugin takes: its name, the kind of its value (kind_of's words) and its
/// range if it is a whole number.
struct ClientOptionSpec {
  std::string_view name;
  std::string_view kind;
  std::string_view platform;  // of the plugins that take it
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

/// The options known here.
std::span<const ClientOptionSpec> known_client_options();

/// Checks names, kinds and ranges, because plugins silently ignore an unknown name and may end the
/// process at a value of the wrong kind.
/// @error invalid argument; an unknown name is answered with the known ones
Result<void> check_client_options(std::span<const NamedValue> options,
                                  std::span<const ClientOptionSpec> more = {});

}  // namespace meshard::pjrt
