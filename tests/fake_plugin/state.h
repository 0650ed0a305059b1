// The fake plugin's objects, and the bookkeeping that every entry goes through.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pjrt/pjrt_c_api.h"
#include "tests/fake_plugin/program.h"

namespace fake {

/// Counts the live ones, so that a test sees a leak.
struct Counted {
  Counted();
  Counted(const Counted&) = delete;
  virtual ~Counted();
};

/// Something that will have happened, shared by the event handles and buffers that wait for it.
struct Moment {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int code = 0;
  std::string message;
  std::vector<std::function<void()>> callbacks;

  void finish(int error_code = 0, std::string error_message = "");
  void wait();
};
using MomentPtr = std::shared_ptr<Moment>;
MomentPtr past();

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
  std::string text;
};
struct PJRT_Memory {
  int id = 0;
  std::string kind;
  PJRT_Device* device = nullptr;
};
struct PJRT_Device {
  PJRT_DeviceDescription description;
  PJRT_Memory memory;
  PJRT_Memory* memories[1] = {&memory};
};
struct PJRT_Client : fake::Counted {
  std::string platform;
  std::vector<std::unique_ptr<PJRT_Device>> owned;
  std::vector<PJRT_Device*> devices;
  std::vector<std::thread> threads;
  std::mutex mutex;
  bool wedged = false;

  PJRT_Device* find(int64_t id) const;
};
struct PJRT_Buffer : fake::Counted {
  fake::Type type;
  PJRT_Device* device = nullptr;
  std::shared_ptr<std::vector<char>> data;
  fake::MomentPtr ready;
  bool deleted = false;
  std::function<void()> on_release;
  fake::MomentPtr host_released;  // finished when the buffer goes
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
  std::vector<PJRT_Device*> devices;
};

namespace fake {

struct Control {
  std::mutex mutex;
  int trap = 0;
  std::string platform = "fake";
  bool reverse_devices = false;
  int run_time = 0;
  int fail_runs = 0;
  struct Entry {
    int calls = 0;
    int fail_in = 0;
    int code = 0;
    std::string message;
    int delay = 0;
  };
  std::map<std::string, Entry, std::less<>> entries;
  int invalid_calls = 0;
  std::vector<int> launch_ids, launch_rows;
};
Control& control();

extern std::atomic<int> live_objects;
extern std::atomic<int> in_flight, most_in_flight, launchers, most_launchers;
void raise_to(std::atomic<int>& most, int value);

PJRT_Error* fail(int code, std::string message);
/// Counts the call, waits and fails as the test asked for.
PJRT_Error* enter(const char* entry);
/// A call that would break a real plugin.
PJRT_Error* invalid(std::string message);

/// The table that GetPjrtApi gives; a test may cut it.
PJRT_Api& table();
void reset_table();

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args);

}  // namespace fake
