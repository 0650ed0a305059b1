// Tested in tests/plugin/key_values_test.cc.
#include "meshard/pjrt/internal/key_value_callbacks.h"

#include <cstring>
#include <exception>

#include "meshard/base/cat.h"

namespace meshard::pjrt::internal {
namespace {

// Plugins leave struct_size, extension_start and the results of these structs uninitialized, so
// none of them is read.

template <class Args>
KeyValueStore& store_of(const Args* args) {
  return *static_cast<KeyValueStore*>(args->user_arg);
}

// The plugin copies the message into its own error.
PJRT_Error* failed(PJRT_CallbackError* make, const Error& error) {
  std::string text = error.message();
  for (const std::string& note : error.notes()) append(text, cat("; ", note));
  return (*make)(static_cast<PJRT_Error_Code>(error.code()), text.data(), text.size());
}

// No exception may reach the plugin.
template <class Call>
PJRT_Error* guarded(PJRT_CallbackError* make, Call call) {
  try {
    Result<void> done = call();
    return done.ok() ? nullptr : failed(make, done.error());
  } catch (const Error& error) {
    return failed(make, error);
  } catch (const std::exception& error) {
    return failed(make, Error(ErrorCode::kInternal, cat("[store] ", error.what())));
  }
}

void delete_value(char* value) { delete[] value; }

// The plugin copies the value and then calls the deleter, also for an empty value.
template <class Args>
void give_value(Args* args, std::string_view value) {
  args->value = new char[value.size() + 1];
  std::memcpy(args->value, value.data(), value.size());
  args->value_size = value.size();
  args->value_deleter_callback = delete_value;
}

PJRT_Error* put(PJRT_KeyValuePutCallback_Args* args) {
  return guarded(args->callback_error, [&] {
    return store_of(args).put({args->key, args->key_size}, {args->value, args->value_size});
  });
}

PJRT_Error* get(PJRT_KeyValueGetCallback_Args* args) {
  return guarded(args->callback_error, [&]() -> Result<void> {
    MESHARD_ASSIGN_OR_RETURN(std::string value,
                             store_of(args).get({args->key, args->key_size},
                                                std::chrono::milliseconds(args->timeout_in_ms)));
    give_value(args, value);
    return {};
  });
}

PJRT_Error* try_get(PJRT_KeyValueTryGetCallback_Args* args) {
  return guarded(args->callback_error, [&]() -> Result<void> {
    std::string_view key(args->key, args->key_size);
    MESHARD_ASSIGN_OR_RETURN(std::optional<std::string> value, store_of(args).try_get(key));
    if (!value)
      return Error(ErrorCode::kNotFound, cat("[store] there is no value for \"", key, '"'));
    give_value(args, *value);
    return {};
  });
}

}  // namespace

void set_key_value_callbacks(PJRT_Client_Create_Args& args, KeyValueStore& store) {
  args.kv_put_callback = put;
  args.kv_put_user_arg = &store;
  args.kv_get_callback = get;
  args.kv_get_user_arg = &store;
  args.kv_try_get_callback = try_get;
  args.kv_try_get_user_arg = &store;
}

}  // namespace meshard::pjrt::internal
