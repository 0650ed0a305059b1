// The resource usage of this process, for a comparison of two points in time.
#pragma once
#include <dlfcn.h>
#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "meshard/base/cat.h"

namespace meshard {

struct Usage {
  std::int64_t memory = 0;    ///< resident, KiB
  std::int64_t threads = 0;   ///< of the process
  std::int64_t files = 0;     ///< open file handles
  std::int64_t mappings = 0;  ///< of memory
  std::int64_t objects = 0;   ///< buffers, events, programs of the fake plugin; 0 with another

  static Usage now() {
    ::malloc_trim(0);  // returns freed memory to the system, so that it does not count
    Usage usage;
    usage.memory = status("VmRSS:");
    usage.threads = status("Threads:");
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      (void)each;
      ++usage.files;
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++usage.mappings;
    usage.objects = objects_of_fake();
    return usage;
  }

  std::string to_string() const {
    return cat(memory, " KiB, ", threads, " threads, ", files, " files, ", mappings, " mappings, ",
               objects, " objects");
  }

 private:
  static std::int64_t status(const std::string& name) {
    std::ifstream lines("/proc/self/status");
    for (std::string word; lines >> word;)
      if (word == name) {
        std::int64_t value = 0;
        lines >> value;
        return value;
      }
    return 0;
  }

  static std::int64_t objects_of_fake() {
    const char* plugin = std::getenv("MESHARD_PLUGIN");
    static void* library = plugin == nullptr ? nullptr : ::dlopen(plugin, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    auto live = reinterpret_cast<int (*)()>(::dlsym(library, "fake_live_objects"));
    return live == nullptr ? 0 : live();
  }
};

}  // namespace meshard
