#include "tests/fake_plugin/exchange.h"

#include <cstring>
#include <thread>

#include "tests/fake_plugin/state.h"

namespace fake {
namespace {

// XLA's.
constexpr int kTopologyOfOne = 120'000, kTopologyOfAll = 300'000, kGroupId = 600'000;
constexpr int kIdBytes = 128;

PJRT_Error* make_error(PJRT_Error_Code code, const char* message, size_t size) {
  return fail(static_cast<int>(code), std::string(message, size));
}

// As XLA calls the callbacks: what it does not set is uninitialized.
template <class Args>
Args call_args(const std::string& key, PJRT_CallbackError* error, void* user) {
  Args args;
  memset(&args, 0xA5, sizeof args);
  args.key = key.data();
  args.key_size = key.size();
  args.callback_error = error;
  args.user_arg = user;
  return args;
}

template <class Args>
void take_value(const Args& args, std::string& value) {
  value.assign(args.value, args.value_size);
  args.value_deleter_callback(args.value);
}

std::string bytes_of(const std::vector<int>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int)};
}

}  // namespace

Exchange::Exchange(const PJRT_Client_Create_Args& args, int node, int nodes, std::string platform)
    : callbacks_(args), node_(node), nodes_(nodes), platform_(std::move(platform)) {}

PJRT_Error* Exchange::put(const std::string& key, const std::string& value) const {
  PJRT_CallbackError error = make_error;
  auto args = call_args<PJRT_KeyValuePutCallback_Args>(key, &error, callbacks_.kv_put_user_arg);
  args.value = value.data();
  args.value_size = value.size();
  return callbacks_.kv_put_callback(&args);
}

PJRT_Error* Exchange::get(const std::string& key, int milliseconds, std::string& value) const {
  PJRT_CallbackError error = make_error;
  auto args = call_args<PJRT_KeyValueGetCallback_Args>(key, &error, callbacks_.kv_get_user_arg);
  args.timeout_in_ms = milliseconds;
  if (PJRT_Error* failed = callbacks_.kv_get_callback(&args)) return failed;
  take_value(args, value);
  return nullptr;
}

PJRT_Error* Exchange::try_get(const std::string& key, std::string& value) const {
  PJRT_CallbackError error = make_error;
  auto args =
      call_args<PJRT_KeyValueTryGetCallback_Args>(key, &error, callbacks_.kv_try_get_user_arg);
  if (PJRT_Error* failed = callbacks_.kv_try_get_callback(&args)) return failed;
  take_value(args, value);
  return nullptr;
}

// Of all processes at the same time.
PJRT_Error* Exchange::collect_topologies() {
  std::vector<PJRT_Error*> errors(static_cast<size_t>(nodes_));
  std::vector<int> counts(static_cast<size_t>(nodes_));
  std::vector<std::thread> threads;
  for (int node = 0; node < nodes_; ++node)
    threads.emplace_back([&, node] {
      std::string value;
      auto i = static_cast<size_t>(node);
      errors[i] =
          get("local_topology/" + platform_ + "/" + std::to_string(node), kTopologyOfOne, value);
      if (!errors[i]) memcpy(&counts[i], value.data(), sizeof(int));
    });
  for (std::thread& thread : threads) thread.join();
  PJRT_Error* first = nullptr;
  for (PJRT_Error* error : errors) {
    if (first != nullptr) delete error;
    if (first == nullptr) first = error;
  }
  return first ? first : put("global_topology/" + platform_, bytes_of(counts));
}

PJRT_Error* Exchange::topology(int own, std::vector<int>& counts) {
  if (!callbacks_.kv_get_callback || !callbacks_.kv_put_callback)
    return fail(3, "num_nodes > 1 needs the key-value callbacks");
  std::string key = "local_topology/" + platform_ + "/" + std::to_string(node_);
  if (PJRT_Error* error = put(key, bytes_of({own}))) return error;
  if (node_ == 0)
    if (PJRT_Error* error = collect_topologies()) return error;
  std::string value;
  if (PJRT_Error* error = get("global_topology/" + platform_, kTopologyOfAll, value)) return error;
  counts.resize(value.size() / sizeof(int));
  memcpy(counts.data(), value.data(), value.size());
  return nullptr;
}

PJRT_Error* Exchange::meet(const std::vector<int>& devices, int root) {
  std::lock_guard lock(mutex_);
  if (!met_.insert(devices).second) return nullptr;
  std::string key = "root_process: " + std::to_string(root) + "; clique: devices=[";
  for (int id : devices) key += (key.back() == '[' ? "" : ",") + std::to_string(id);
  key += "]; communication_id=0; incarnations=[]";
  std::string id(kIdBytes, '\0');
  id[kIdBytes - 1] = static_cast<char>(devices.size());
  if (node_ == root) return put(key, id);
  std::string value;
  PJRT_Error* error = try_get(key, value);
  if (error && error->code == 5) {
    delete error;
    error = get(key, kGroupId, value);
  }
  if (error) return error;
  return value == id ? nullptr : fail(13, "the id of the group is not that of its root");
}

}  // namespace fake
