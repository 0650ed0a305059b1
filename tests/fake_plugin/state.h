// The fake plugin's objects, and the bookkeeping of every entry.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pjrt/pjrt_c_api.h"
#include "tests/fake_plugin/exchange.h"
#include "tests/fake_plugin/program.h"

namespace fake {

/// Counts live objects, so that a test can detect a leak.
struct Counted {
  Counted();
  Counted(const Counted&) = delete;
  virtual ~Counted();
};

/// A completion, shared by the event handles and buffers that wait for it.
struct Moment {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int code = 0;
  std::string message;
  double time = 0;  // on simulated clock number `clock`; 0 on later ones
  int clock = 0;
  std::vector<std::function<void()>> callbacks;

  void finish(int error_code = 0, std::string error_message = "");
  void wait();
};
using MomentPtr = std::shared_ptr<Moment>;
MomentPtr past();

/// The bytes of one or more buffers on a device: its own memory, or host memory in place.
struct Bytes {
  Bytes(PJRT_Device* device, size_t size);
  /// Host memory in place. `writable`: the plugin may write it, and nothing else may read it.
  Bytes(PJRT_Device* device, char* host, size_t size, bool writable);
  Bytes(const Bytes&) = delete;
  ~Bytes();
  /// A copy on a device, in its own memory.
  std::shared_ptr<Bytes> copy(PJRT_Device* to) const;
  bool in_place() const { return own.empty() && size > 0; }

  std::vector<char> own;
  char* data = nullptr;
  size_t size = 0;
  bool writable = true;
  PJRT_Device* device = nullptr;
  MomentPtr host_released = nullptr;  // finished when this object is destroyed
};
using BytesPtr = std::shared_ptr<Bytes>;

}  // namespace fake

struct PJRT_Error : fake::Counted {
  int code = 0;
  std::string message;
};
struct PJRT_Event : fake::Counted {
  fake::MomentPtr moment;
};
struct PJRT_DeviceDescription {
  int id = 0;
  int process = 0;
  std::string text;
  std::string kind = "fake";
  int64_t coords[3] = {};
  std::vector<PJRT_NamedValue> attributes;  // they point to `coords`
};
struct PJRT_TopologyDescription {
  std::vector<PJRT_DeviceDescription*> devices;
  int64_t wrap[3] = {};
  std::vector<PJRT_NamedValue> attributes;
};
struct PJRT_Memory {
  int id = 0;
  std::string kind;
  PJRT_Device* device = nullptr;
};
struct PJRT_Device {
  PJRT_DeviceDescription description;
  bool addressable = true;
  std::atomic<int64_t> bytes_in_use{0}, peak_bytes{0};
  PJRT_Memory memory;
  PJRT_Memory* memories[1] = {&memory};
};
struct PJRT_Client : fake::Counted {
  std::string platform;
  int process = 0;
  std::unique_ptr<fake::Exchange> exchange;  // null: there is one process
  std::vector<std::unique_ptr<PJRT_Device>> owned;
  std::vector<PJRT_Device*> devices, addressable;
  PJRT_TopologyDescription topology;
  std::vector<std::thread> threads;
  std::mutex mutex;
  bool wedged = false;

  PJRT_Device* find(int64_t id) const;
};
struct PJRT_Buffer : fake::Counted {
  fake::Type type;
  PJRT_Device* device = nullptr;
  fake::BytesPtr data;
  fake::MomentPtr ready;
  bool deleted = false;
  int external = 0;  // external references on the bytes
  std::function<void()> on_release;
  ~PJRT_Buffer() override;
};
struct PJRT_Executable : fake::Counted {
  std::shared_ptr<fake::Program> program;
  std::string optimized;
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
};
struct PJRT_LoadedExecutable : fake::Counted {
  PJRT_Client* client = nullptr;
  std::shared_ptr<fake::Program> program;
  std::vector<PJRT_Device*> all_devices;  // by logical device
  std::vector<PJRT_Device*> devices;      // those of this process, in the same order

  int64_t logical(const PJRT_Device* device) const;
};

namespace fake {

/// A grid of chips that the devices fill, x first. Further devices are in the next slice.
struct Grid {
  int64_t size[3];
  int64_t wrap[3];
  int64_t cores;
  std::string kind;
};

struct Control {
  std::mutex mutex;
  std::optional<Grid> grid;
  int trap = 0;
  std::string platform = "fake";
  bool reverse_devices = false;
  int process = 0, processes = 1;
  int run_time = 0;
  int fail_runs = 0;
  bool zero_copy = false;
  /// A failure or delay of one device in one launch.
  struct Shard {
    int launch_in = 0;
    int device = 0;
    int code = 0;
    int delay = 0;
  };
  std::vector<Shard> shards;
  /// A failure of one launch of the programs of one name.
  struct FailingProgram {
    int launch_in = 0;
    int code = 0;
  };
  std::map<std::string, FailingProgram, std::less<>> programs;
  bool hold_runs = false;
  std::vector<std::function<void()>> held;  // complete the held launches
  int ready_fail_in = 0, ready_code = 0;
  int transfer_fail_in = 0, transfer_code = 0;
  struct Entry {
    int calls = 0;
    int fail_in = 0;
    int code = 0;
    std::string message;
    int delay = 0;
  };
  std::map<std::string, Entry, std::less<>> entries;
  Entry any_entry;
  int invalid_calls = 0;
  static constexpr std::size_t kMostListed = 100'000;
  std::vector<int> launch_ids, launch_rows;  // of the first launches since the reset
};
Control& control();

extern std::atomic<int> live_objects, external_references;
extern std::atomic<int> in_flight, most_in_flight, launchers, most_launchers;
void raise_to(std::atomic<int>& most, int value);

PJRT_Error* fail(int code, std::string message);
/// Whether the device is one of this process; counts a call for another one as invalid.
PJRT_Error* check_local(const PJRT_Device* device);
/// Counts the call, then waits and fails as the test requested.
PJRT_Error* enter(const char* entry);
#define ENTRY(Name) PJRT_Error* Name(Name##_Args* args)
#define ENTER(Name) \
  if (PJRT_Error* error = enter(#Name)) return error
/// Reports a call that would break a real plugin.
PJRT_Error* invalid(std::string message);

/// Fills a result with garbage, as a call that fails may leave it.
template <class T>
void spoil(T& result) {
  memset(static_cast<void*>(&result), 0xA5, sizeof result);
}

/// A new event handle for a completion.
PJRT_Event* event_of(MomentPtr moment);

void set_buffer_entries(PJRT_Api& api);
void set_transfer_entries(PJRT_Api& api);
/// Returns false if the plugin does not support the type.
bool element_of(PJRT_Buffer_Type number, Type& to);

/// The table that GetPjrtApi returns; a test may truncate it.
PJRT_Api& table();
void reset_table();

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args);

/// Whether a result is the whole of the argument with its number, of which devices have shards.
bool is_gathered(const Program& program, size_t result);
/// Gathers it from all processes of the program.
PJRT_Error* gather(const PJRT_LoadedExecutable_Execute_Args* args, size_t result,
                   std::string& whole);

/// Sets a device's attributes according to its id.
void place_on_grid(PJRT_DeviceDescription& device, const Grid& grid);
PJRT_Error* topology_of_client(PJRT_Client_TopologyDescription_Args* args);
PJRT_Error* topology_devices(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args);
PJRT_Error* topology_attributes(PJRT_TopologyDescription_Attributes_Args* args);

// Applies MESHARD_FAKE_ON_COMPILE, for tests that start a program: `abort`, `hang`, or `8 words`,
// an error with that code. It also prints the value, in place of a compiler's log.
PJRT_Error* fate_of_compile();

}  // namespace fake
