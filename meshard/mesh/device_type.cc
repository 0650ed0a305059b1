#include "meshard/mesh/device_type.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

namespace meshard {
namespace {

using Names = std::vector<std::string>;

// Replaced a few times in a process, and never freed: readers take no lock.
std::atomic<const Names*> default_names{nullptr};

}  // namespace

void internal::set_default_device_types(Names names) {
  static std::mutex mutex;
  static auto* all = new std::deque<Names>;
  std::lock_guard lock(mutex);
  const Names* known = names.empty() ? nullptr : &all->emplace_back(std::move(names));
  default_names.store(known, std::memory_order_release);
}

bool internal::same_device_type(std::string_view first, std::string_view second) {
  if (first == second) return true;
  const Names* names = default_names.load(std::memory_order_acquire);
  if (!names) return first.empty() || second.empty();
  auto is_default = [&](std::string_view type) {
    return type.empty() || std::find(names->begin(), names->end(), type) != names->end();
  };
  return is_default(first) && is_default(second);
}

bool same_platform(const Mesh& first, const Mesh& second) {
  return internal::same_device_type(first.device_type(), second.device_type());
}

std::string platform_name(const Mesh& mesh) {
  if (!mesh.device_type().empty()) return mesh.device_type();
  const Names* names = default_names.load(std::memory_order_acquire);
  return names ? names->front() : "any";
}

}  // namespace meshard
