#include "meshard/partitioned/collective_call.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "meshard/base/awaiting.h"
#include "meshard/processes/reduction.h"
#include "meshard/processes/wait_observer.h"

namespace meshard {
namespace {

constexpr std::string_view kKinds[] = {"all-reduce",           "all-gather",  "reduce-scatter",
                                       "all-to-all",           "all-to-all",  "collective-permute",
                                       "collective-broadcast", "partition-id"};
constexpr std::int32_t kKindCount = 8;

// A string of MLIR.
std::string quoted(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E || c == '"' || c == '\\') {
      out += '\\';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string array_text(std::span<const std::int32_t> numbers) {
  return numbers.empty() ? "array<i32>" : cat("array<i32: ", join(numbers, ", "), ">");
}

struct Service {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<LaunchHistory> history;
};

struct Services {
  std::mutex mutex;
  std::map<int, Service> by_device;
};

// Never destroyed: programs may still run when the process ends.
Services& services() {
  static Services& all = *new Services();
  return all;
}

Service service_of(int device) {
  Services& all = services();
  std::lock_guard lock(all.mutex);
  auto found = all.by_device.find(device);
  return found == all.by_device.end() ? Service() : found->second;
}

Result<void> serve_collective(const pjrt::HostCall& call) {
  MESHARD_ASSIGN_OR_RETURN(CollectiveCall collective, CollectiveCall::from_attributes(call));
  Service service = service_of(call.device);
  if (service.communicator == nullptr)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[", to_string(collective.kind), "] device ", call.device,
                     " is not connected to other processes"))
        .with_note(cat("in ", collective.where));
  if (collective.kind == CollectiveCallKind::kPosition)  // waits for nobody
    return perform(collective, call, *service.communicator);
  ObservedWait observed("collective", to_string(collective.kind), collective.where);
  if (service.history == nullptr) return perform(collective, call, *service.communicator);
  // A plugin may run a small program in the thread that launches it.
  std::optional<internal::AwaitingScope> awaiting;
  if (internal::is_program_thread()) awaiting.emplace(internal::Awaiting{.what = "a collective"});
  service.history->begin_collective(to_string(collective.kind), collective.where);
  Result<void> done = perform(collective, call, *service.communicator);
  service.history->end_collective();
  return done;
}

}  // namespace

std::string_view to_string(CollectiveCallKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string CollectiveCall::to_string() const {
  return cat("{chained = ", chained ? 1 : 0, " : i32, dimension = ", dimension,
             " : i32, kind = ", static_cast<int>(kind), " : i32, ranks = ", array_text(ranks),
             ", reduction = ", static_cast<int>(reduction), " : i32, sizes = ", array_text(sizes),
             ", where = ", quoted(where), "}");
}

Result<CollectiveCall> CollectiveCall::from_attributes(const pjrt::HostCall& call) {
  CollectiveCall to;
  bool good = true;
  auto number = [&](std::string_view name, std::int32_t end) {
    std::span<const std::int32_t> list = call.number_list(name);
    good &= list.size() == 1 && list[0] >= 0 && list[0] < end;
    return list.empty() ? 0 : list[0];
  };
  to.kind = static_cast<CollectiveCallKind>(number("kind", kKindCount));
  to.reduction = static_cast<Reduction>(number("reduction", kReductionCount));
  to.dimension = number("dimension", INT32_MAX);
  to.chained = number("chained", 2) != 0;
  to.ranks = call.number_list("ranks");
  to.sizes = call.number_list("sizes");
  to.where = call.attribute("where");
  std::int64_t total = 0;
  for (std::int32_t size : to.sizes) {
    good &= size > 0;
    total += size;
  }
  bool in_groups =
      to.kind != CollectiveCallKind::kPermute && to.kind != CollectiveCallKind::kPosition;
  if (good && in_groups)
    good = to.sizes.size() == 1 ? std::ssize(to.ranks) % total == 0 : std::ssize(to.ranks) == total;
  if (to.kind == CollectiveCallKind::kPermute) good &= std::ssize(to.ranks) == 2 * total;
  if (good) return to;
  return Error(ErrorCode::kInvalidArgument, cat("[collective] a custom call of ", kCollectiveTarget,
                                                " without the attributes of a collective"));
}

std::span<const std::int32_t> CollectiveCall::group_of(int rank) const {
  std::size_t at = 0;
  for (std::size_t group = 0; at < ranks.size(); ++group) {
    std::int32_t size = sizes[sizes.size() == 1 ? 0 : group];
    std::span<const std::int32_t> members = ranks.subspan(at, static_cast<std::size_t>(size));
    if (std::ranges::find(members, rank) != members.end()) return members;
    at += members.size();
  }
  return {};
}

Result<void> accept_collectives(const pjrt::Client& client) {
  return pjrt::accept_host_calls(client, kCollectiveTarget, serve_collective);
}

Result<CollectiveService> CollectiveService::start(const pjrt::Client& client,
                                                   std::shared_ptr<Communicator> communicator,
                                                   std::vector<int> devices,
                                                   std::shared_ptr<LaunchHistory> history) {
  MESHARD_RETURN_IF_ERROR(accept_collectives(client));
  Services& all = services();
  std::lock_guard lock(all.mutex);
  for (int device : devices)
    if (all.by_device.count(device))
      return Error(ErrorCode::kAlreadyExists,
                   cat("[collective] device ", device, " already communicates"));
  for (int device : devices) all.by_device[device] = {communicator, history};
  return CollectiveService(std::move(devices));
}

CollectiveService::~CollectiveService() {
  if (devices_.empty()) return;
  Services& all = services();
  std::lock_guard lock(all.mutex);
  for (int device : devices_) all.by_device.erase(device);
}

}  // namespace meshard
