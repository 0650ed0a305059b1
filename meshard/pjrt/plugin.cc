// Tested in tests/plugin/pjrt_fake_test.cc.
#include "meshard/pjrt/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "meshard/base/environment.h"
#include "meshard/base/file_cache.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/internal/plugin_log.h"
#include "meshard/pjrt/internal/process_end.h"
#include "meshard/pjrt/plugin_search.h"

namespace meshard::pjrt {

struct Plugin::State {
  const PJRT_Api* api = nullptr;
  std::string path;
  std::vector<NamedValue> attributes;
  std::vector<Extension> extensions;
};

namespace {

// Every known plugin since 0.40 has the entries up to OutputDimensions, which meshard requires.
constexpr int kOldestMinor = 40;
constexpr std::size_t kRequiredSize =
    offsetof(PJRT_Api, PJRT_Executable_OutputDimensions) + sizeof(void*);

struct Registry {
  std::mutex mutex;
  std::map<std::string, Plugin> by_path;
};

Registry& registry() {
  static auto* instance = new Registry;  // outlives every static object that may use a plugin
  return *instance;
}

std::string version_list(const std::vector<NamedValue>& attributes, std::string_view name) {
  auto* numbers = find_value<std::vector<std::int64_t>>(attributes, name);
  return numbers == nullptr ? "" : join(*numbers, ".");
}

Result<void> check_version(const PJRT_Api* api, const std::string& path) {
  const PJRT_Api_Version& version = api->pjrt_api_version;
  ApiVersion theirs{version.major_version, version.minor_version};
  if (theirs.major != PJRT_API_MAJOR)
    return Error(ErrorCode::kUnimplemented, cat("[plugin] ", path, " has PJRT API ", theirs,
                                                ", meshard needs major version ", PJRT_API_MAJOR));
  if (theirs.minor < kOldestMinor)
    return Error(ErrorCode::kUnimplemented,
                 cat("[plugin] ", path, " has PJRT API ", theirs,
                     ", too old: meshard needs at least ", oldest_api_version()));
  if (api->struct_size < kRequiredSize)
    return Error(ErrorCode::kUnimplemented,
                 cat("[plugin] ", path, " has a function table of ", api->struct_size,
                     " bytes, meshard needs at least ", kRequiredSize));
  return {};
}

}  // namespace

std::string ApiVersion::to_string() const { return cat(major, ".", minor); }
ApiVersion built_api_version() { return {PJRT_API_MAJOR, PJRT_API_MINOR}; }
ApiVersion oldest_api_version() { return {PJRT_API_MAJOR, kOldestMinor}; }

Result<Plugin> Plugin::adopt(const PJRT_Api* api, std::string path) {
  if (api == nullptr)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[plugin] ", path, ": GetPjrtApi returned null"));
  MESHARD_RETURN_IF_ERROR(check_version(api, path));
  MESHARD_PJRT_ARGS(PJRT_Plugin_Initialize, initialize);
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Plugin_Initialize, initialize));

  auto state = std::make_unique<State>();
  state->api = api;
  state->path = std::move(path);
  MESHARD_PJRT_ARGS(PJRT_Plugin_Attributes, attributes);
  if (auto read = MESHARD_PJRT_CALL(api, PJRT_Plugin_Attributes, attributes); read.ok())
    state->attributes =
        internal::read_named_values(attributes.attributes, attributes.num_attributes);
  for (const PJRT_Extension_Base* extension = api->extension_start; extension != nullptr;
       extension = extension->next)
    state->extensions.push_back({type_of(*extension), extension->struct_size});
  // Never freed, because the plugin is never unloaded; stored where leak checkers find it.
  static std::mutex mutex;
  static auto* kept = new std::vector<std::unique_ptr<const State>>;
  std::lock_guard lock(mutex);
  kept->push_back(std::move(state));
  return Plugin(kept->back().get());
}

Result<Plugin> Plugin::load(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr)
    return Error(ErrorCode::kNotFound, cat("[plugin] there is no file ", path));
  internal::PluginWork work;  // exit would race with the library's static constructors
  std::lock_guard lock(registry().mutex);
  if (auto found = registry().by_path.find(resolved); found != registry().by_path.end())
    return found->second;

  MESHARD_RETURN_IF_ERROR(check_file_trust(resolved));
  MESHARD_RETURN_IF_ERROR(check_fetched_file(resolved));
  MESHARD_ASSIGN_OR_RETURN(std::int64_t asked, environment_integer("MESHARD_PLUGIN_LOG", -1, 0, 3));
  choose_plugin_log(asked, log_level(), [](const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), /*overwrite=*/0);
  });
  void* library = ::dlopen(resolved, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error(ErrorCode::kFailedPrecondition, cat("[plugin] cannot load ", ::dlerror()));
  auto get_api = reinterpret_cast<const PJRT_Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[plugin] ", path, " is not a PJRT plugin: it does not export GetPjrtApi"));
  MESHARD_ASSIGN_OR_RETURN(Plugin plugin, adopt(get_api(), path));
  registry().by_path.emplace(resolved, plugin);
  return plugin;
}

const std::string& Plugin::path() const { return state_->path; }
ApiVersion Plugin::version() const {
  const PJRT_Api_Version& version = state_->api->pjrt_api_version;
  return {version.major_version, version.minor_version};
}
const std::vector<NamedValue>& Plugin::attributes() const { return state_->attributes; }
const std::vector<Extension>& Plugin::extensions() const { return state_->extensions; }
const PJRT_Api* Plugin::api() const { return state_->api; }

bool Plugin::has_extension(int type) const {
  for (const Extension& extension : state_->extensions)
    if (extension.type == type) return true;
  return false;
}

std::string Plugin::newest_stablehlo() const {
  return version_list(state_->attributes, "stablehlo_current_version");
}
std::string Plugin::oldest_stablehlo() const {
  return version_list(state_->attributes, "stablehlo_minimum_version");
}

std::vector<std::string> Plugin::missing_entries() const {
  std::vector<std::string> missing;
  const PJRT_Api* table = state_->api;
  auto look = [&](std::size_t offset, const char* name) {
    bool there = table->struct_size >= offset + sizeof(void*) &&
                 *reinterpret_cast<void* const*>(reinterpret_cast<const char*>(table) + offset);
    if (!there) missing.emplace_back(name);
  };
#define LOOK(Entry) look(offsetof(PJRT_Api, Entry), #Entry)
  LOOK(PJRT_Buffer_CopyToMemory);
  LOOK(PJRT_Client_CreateViewOfDeviceBuffer);
  LOOK(PJRT_Executable_Fingerprint);
  LOOK(PJRT_Client_TopologyDescription);
  LOOK(PJRT_Executable_GetCompiledMemoryStats);
  LOOK(PJRT_Memory_Kind_Id);
  LOOK(PJRT_ExecuteContext_Create);
  LOOK(PJRT_Buffer_CopyRawToHost);
  LOOK(PJRT_AsyncHostToDeviceTransferManager_TransferData);
  LOOK(PJRT_Client_CreateBuffersForAsyncHostToDevice);
  LOOK(PJRT_AsyncHostToDeviceTransferManager_AddMetadata);
  LOOK(PJRT_Client_DmaMap);
  LOOK(PJRT_Client_CreateUninitializedBuffer);
  LOOK(PJRT_Client_UpdateGlobalProcessInfo);
  LOOK(PJRT_TopologyDescription_Deserialize);
  LOOK(PJRT_Client_CreateAliasBuffer);
  LOOK(PJRT_LoadedExecutable_GetDeviceAssignment);
#undef LOOK
  return missing;
}

}  // namespace meshard::pjrt
