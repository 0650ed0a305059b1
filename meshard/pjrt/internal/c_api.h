// Calls through a plugin's function table. Private to the sources of meshard/pjrt; the only header
// that includes the C API.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/named_value.h"
#include "pjrt/pjrt_c_api.h"

/// Declares the zeroed argument struct of an entry and sets its struct_size.
#define MESHARD_PJRT_ARGS(Entry, name) \
  Entry##_Args name{};                 \
  name.struct_size = Entry##_Args_STRUCT_SIZE

/// Whether the plugin's table includes the entry and the entry is not null.
#define MESHARD_PJRT_HAS(api, Entry) \
  ((api)->struct_size >= offsetof(PJRT_Api, Entry) + sizeof(void*) && (api)->Entry != nullptr)

/// Calls an entry, which may be optional; returns a Result<void>.
#define MESHARD_PJRT_CALL(api, Entry, args)                                          \
  (MESHARD_PJRT_HAS(api, Entry)                                                      \
       ? ::meshard::pjrt::internal::take_error((api), (api)->Entry(&(args)), #Entry) \
       : ::meshard::pjrt::internal::missing_entry((api), #Entry))

/// Asks an entry, which may be optional, about one object: declares the argument struct `name`,
/// sets its member `of` to `object`, and calls the entry. Returns its error from the function.
#define MESHARD_PJRT_QUERY(api, Entry, name, of, object) \
  MESHARD_PJRT_ARGS(Entry, name);                        \
  name.of = (object);                                    \
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, Entry, name))

namespace meshard::pjrt::internal {

/// Converts the error of a failed call, and frees `error`. @pre error != nullptr
Error to_error(const PJRT_Api* api, PJRT_Error* error, std::string_view entry);

inline Result<void> take_error(const PJRT_Api* api, PJRT_Error* error, std::string_view entry) {
  if (error == nullptr) [[likely]]
    return {};
  return to_error(api, error, entry);
}

/// An `unimplemented` error that names the entry and the plugin's version.
Error missing_entry(const PJRT_Api* api, std::string_view entry);

std::vector<NamedValue> read_named_values(const PJRT_NamedValue* values, std::size_t count);

/// Views of `values`, which must outlive the result.
std::vector<PJRT_NamedValue> view_named_values(std::span<const NamedValue> values);

}  // namespace meshard::pjrt::internal

namespace meshard::pjrt {

/// Numbers of the extensions that meshard uses.
inline constexpr int kFfiExtension = 5;
inline constexpr int kShardingsExtension = 19;

/// The number of an extension in a plugin's list. Newer plugins have numbers that the enum in our
/// copy of the header does not, so that it must not be read as one.
int type_of(const PJRT_Extension_Base& extension);

/// `FFI` for 5; `unknown` for numbers not in this list.
std::string_view extension_name(int type);

}  // namespace meshard::pjrt
