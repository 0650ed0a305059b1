// Tested in tests/plugin/launches_test.cc.
#include "meshard/pjrt/internal/callbacks.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "meshard/base/advice.h"
#include "meshard/base/cat.h"
#include "meshard/pjrt/internal/process_end.h"

namespace meshard::pjrt::internal {
namespace {

void call_now(const std::function<void()>& call) noexcept {
  std::string what;
  try {
    call();
    return;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "an exception of a type that is not a std::exception";
  }
  try {
    meshard::internal::advise(
        {"pjrt.callback",
         cat("[pjrt] a callback threw an exception, which was discarded: ", what),
         {}});
  } catch (...) {  // thrown by the handler
  }
}

class Callbacks {
 public:
  // Moves from `call` last, so that after an exception the caller still has it.
  void add(std::function<void()>& call) {
    std::unique_lock lock(mutex_);
    if (!running_) {
      // Never joined: the process may end during a callback.
      std::thread([this] { work(); }).detach();
      running_ = true;
    }
    waiting_.push_back(std::move(call));
    ++given_;
    changed_.notify_all();
  }
  void finish() {
    std::unique_lock lock(mutex_);
    std::uint64_t until = given_;
    changed_.wait(lock, [&] { return done_ >= until; });
  }

 private:
  void work() {
    never_hold_this_thread();  // finish() waits for it
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      std::function<void()> call = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      call_now(call);
      call = {};  // its captures may run user code too
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t given_ = 0, done_ = 0;
  bool running_ = false;
};

Callbacks& callbacks() {
  static auto* instance = new Callbacks;  // plugins may call back until the process ends
  return *instance;
}

// Plugins leave struct_size, extension_start and the results of these structs uninitialized, so
// none of them is read.

template <class Args>
KeyValueStore& store_of(const Args* args) {
  return *static_cast<KeyValueStore*>(args->user_arg);
}

// The plugin copies the message into its own error.
PJRT_Error* failed(PJRT_CallbackError* make, const Error& error) {
  std::string text = error.message();
  for (const std::string& note : error.notes()) append(text, "; ", note);
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

void call_soon(std::function<void()> call) noexcept {
  try {
    callbacks().add(call);
  } catch (const std::exception&) {
    call_now(call);  // no thread or memory: call it here instead
  }
}

void finish_callbacks() { callbacks().finish(); }

void set_key_value_callbacks(PJRT_Client_Create_Args& args, KeyValueStore& store) {
  args.kv_put_callback = put;
  args.kv_put_user_arg = &store;
  args.kv_get_callback = get;
  args.kv_get_user_arg = &store;
  args.kv_try_get_callback = try_get;
  args.kv_try_get_user_arg = &store;
}

}  // namespace meshard::pjrt::internal
