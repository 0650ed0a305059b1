// Client options, checked against those that plugins are known to accept.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"

namespace meshard::pjrt {

/// One option that some plugin accepts: its name, its kind (as named by kind_of) and, for an
/// integer, its range.
struct ClientOptionSpec {
  std::string_view name;
  std::string_view kind;
  std::string_view platform;  // of the plugins that accept it
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

/// Checks names, kinds and ranges of options. Plugins silently ignore an unknown name, and may
/// abort the process if a value has the wrong kind.
/// @error invalid argument; for an unknown name, the message lists the known ones
Result<void> check_client_options(std::span<const NamedValue> options,
                                  std::span<const ClientOptionSpec> more = {});

}  // namespace meshard::pjrt
