// What the fake plugin does with the key-value callbacks of PJRT_Client_Create, as XLA's GPU plugin
// does: the processes publish their topologies, and each group of devices meets at its first use.
#pragma once
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pjrt/pjrt_c_api.h"

namespace fake {

/// An owner of copies of the callbacks, which the client uses as long as it exists.
class Exchange {
 public:
  Exchange(const PJRT_Client_Create_Args& args, int node, int nodes, std::string platform);

  /// Publishes the number of devices of this process. `counts` receives those of all.
  PJRT_Error* topology(int own, std::vector<int>& counts);
  /// The first use of a group of devices: all its processes get an id from the first one.
  PJRT_Error* meet(const std::vector<int>& devices, int root);
  /// Stores a value, or gets that of another process.
  PJRT_Error* put(const std::string& key, const std::string& value) const;
  PJRT_Error* get(const std::string& key, int milliseconds, std::string& value) const;

  int node() const { return node_; }

 private:
  /// The error has code 5 if there is no value.
  PJRT_Error* try_get(const std::string& key, std::string& value) const;
  PJRT_Error* collect_topologies();

  PJRT_Client_Create_Args callbacks_;
  int node_, nodes_;
  std::string platform_;
  std::mutex mutex_;
  std::set<std::vector<int>> met_;
};

}  // namespace fake
