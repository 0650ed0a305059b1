// Creates the client of a platform from the options and the environment.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/runtime.h"

namespace meshard::internal {

/// @error invalid argument: a further platform has no name, an invalid one, or that of the default
/// platform, or is listed twice.
Result<void> check_runtime_options(const RuntimeOptions& options);

/// The name of the default platform, if known before its plugin is loaded: `options.platform`,
/// otherwise MESHARD_PLATFORM, otherwise `cpu` if no plugin is specified. Otherwise empty.
std::string default_platform(const RuntimeOptions& options);

/// True if `options` or MESHARD_PLUGIN specifies the default platform's plugin, which may be for
/// any platform.
bool names_default_plugin(const RuntimeOptions& options);

/// True if `options` or MESHARD_PLUGIN_<TYPE> specifies a separate plugin for the platform.
bool is_further_platform(const RuntimeOptions& options, std::string_view type);

/// Creates the client of the default platform.
/// @error not found without a plugin; the plugin's errors
Result<pjrt::Client> make_default_client(const RuntimeOptions& options);

/// Creates the client of another platform.
/// @error as make_default_client, naming the platform
Result<pjrt::Client> make_further_client(const RuntimeOptions& options, const std::string& type);

}  // namespace meshard::internal
