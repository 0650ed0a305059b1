// The client of a platform, as the options and the environment of the process say.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/runtime.h"

namespace meshard::internal {

/// @error invalid argument: a further platform without a name, with an invalid one, with that of
/// the default platform, or named twice.
Result<void> check_runtime_options(const RuntimeOptions& options);

/// The name of the default platform as far as it is known before its plugin is loaded:
/// `options.platform`, MESHARD_PLATFORM, or `cpu` if no plugin is named either. Else empty.
std::string default_platform(const RuntimeOptions& options);

/// True if `options` or MESHARD_PLUGIN names the default platform's plugin: it may be for any
/// platform.
bool names_default_plugin(const RuntimeOptions& options);

/// True if `options` or MESHARD_PLUGIN_<TYPE> gives the platform a plugin of its own, beside the
/// default one.
bool is_further_platform(const RuntimeOptions& options, std::string_view type);

/// The client of the default platform.
/// @error not found without a plugin; what the plugin answers
Result<pjrt::Client> make_default_client(const RuntimeOptions& options);

/// The client of another platform.
/// @error as make_default_client, naming the platform
Result<pjrt::Client> make_further_client(const RuntimeOptions& options, const std::string& type);

}  // namespace meshard::internal
