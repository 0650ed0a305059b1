// The folder in which meshard keeps fetched plugins and compiled programs.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace meshard {

/// Reads an environment variable; tests supply their own function.
using ReadEnvironment = std::function<std::optional<std::string>(const char* name)>;

/// The variable in the environment of the process; none if it is not set or empty, or if the
/// program runs with the rights of another user.
std::optional<std::string> process_variable(const char* name);

/// The cache directory, whether or not it exists: MESHARD_CACHE, otherwise XDG_CACHE_HOME/meshard,
/// otherwise ~/.cache/meshard. The home directory is HOME or, if it is not set, that of the
/// password database. Empty if none of these is set: then nothing is cached.
std::string cache_folder(const ReadEnvironment& environment = {});

}  // namespace meshard
