#include "meshard/processes/internal/launch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/handshake.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard::internal {
namespace {

constexpr const char* kAddressVariable = "MESHARD_PROCESS_ADDRESS";
constexpr const char* kRankVariable = "MESHARD_PROCESS_RANK";
constexpr const char* kCountVariable = "MESHARD_PROCESS_COUNT";
constexpr const char* kSecretVariable = "MESHARD_PROCESS_SECRET";
constexpr std::size_t kShortestSecret = 16;
constexpr int kMostProcesses = 1 << 16;

Error launch_error(std::string text) {
  return Error(ErrorCode::kInvalidArgument, "[processes] " + std::move(text));
}

/// An empty variable counts as not set.
std::string text_of(const ReadVariable& variable, const char* name) {
  const char* text = variable(name);
  return text != nullptr ? text : "";
}

Result<int> number_of(const char* name, const std::string& text) {
  Result<std::int64_t> number = read_number(text);
  if (!number.ok() || *number < 0 || *number > kMostProcesses)
    return launch_error(cat(name, "=", text, " is not a number from 0 to ", kMostProcesses));
  return static_cast<int>(*number);
}

Result<Launch> at_address(const std::string& address, int rank, int count, std::string secret) {
  Launch launch{.kind = LaunchKind::kAddress};
  MESHARD_ASSIGN_OR_RETURN(launch.address, ProcessAddress::parse(address));
  if (count < 1 || rank < 0 || rank >= count)
    return launch_error(
        cat("process ", rank, " of ", count, " processes: ranks are from 0 to count - 1"));
  if (!launch.address.is_unix() && secret.size() < kShortestSecret)
    return launch_error(cat("process 0 would listen at ", address, " with a secret of ",
                            secret.size(), " characters: ", kSecretVariable, " needs at least ",
                            kShortestSecret, " (openssl rand -hex 32), the same in all processes"));
  launch.rank = rank;
  launch.count = count;
  launch.secret = std::move(secret);
  if (count == 1) launch.kind = LaunchKind::kSingle;
  return launch;
}

Result<Launch> from_variables(const ReadVariable& variable) {
  std::string missing, set;
  for (const char* name : {kAddressVariable, kRankVariable, kCountVariable}) {
    std::string& list = text_of(variable, name).empty() ? missing : set;
    list += cat(list.empty() ? "" : ", ", name);
  }
  if (!missing.empty())
    return launch_error(cat(missing, " must be set, too, because ",
                            set.empty() ? std::string(kSecretVariable) : set, " is set"));
  MESHARD_ASSIGN_OR_RETURN(int rank, number_of(kRankVariable, text_of(variable, kRankVariable)));
  MESHARD_ASSIGN_OR_RETURN(int count, number_of(kCountVariable, text_of(variable, kCountVariable)));
  return at_address(text_of(variable, kAddressVariable), rank, count,
                    text_of(variable, kSecretVariable));
}

/// A launcher of MPI sets `present`; `count` has the number of processes, if that is known.
struct MpiLauncher {
  const char* present;
  const char* count;
};
// Open MPI; MPICH and Intel MPI (hydra); PMIx; a step of Slurm (a batch script alone sets no step).
constexpr std::array<MpiLauncher, 4> kMpiLaunchers = {{
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
}};

}  // namespace

Result<Launch> find_launch(const ProcessesOptions& options, const ReadVariable& variable) {
  if (!options.address.empty())
    return at_address(options.address, options.rank, options.count, options.secret);
  if (options.rank != -1 || options.count != 0 || !options.secret.empty())
    return launch_error("ProcessesOptions has a rank, a count or a secret, but no address");
  for (const char* name : {kAddressVariable, kRankVariable, kCountVariable, kSecretVariable})
    if (!text_of(variable, name).empty()) return from_variables(variable);
  for (const MpiLauncher& launcher : kMpiLaunchers) {
    if (text_of(variable, launcher.present).empty()) continue;
    Launch launch{.kind = LaunchKind::kMpi};
    std::string count = text_of(variable, launcher.count);
    if (!count.empty()) {
      MESHARD_ASSIGN_OR_RETURN(launch.announced, number_of(launcher.count, count));
      launch.variable = launcher.count;
    }
    if (launch.announced == 1) launch.kind = LaunchKind::kSingle;
    return launch;
  }
  return Launch{};
}

namespace {

using MachineName = std::array<char, 128>;  // its size is the same in all processes

/// What process 0 tells the others.
struct Invitation {
  std::string error = {};  ///< why it cannot listen
  std::string secret = {};
  std::string loopback = {};  ///< for processes on its machine
  std::vector<std::string> addresses = {};
  MESHARD_FIELDS(error, secret, loopback, addresses)
};

MachineName own_machine() {
  MachineName name{};
  std::string text = machine_name();
  std::memcpy(name.data(), text.data(), std::min(text.size(), name.size()));
  return name;
}

Result<MeetingPoint> listen_here(bool one_machine) {
  MeetingPoint point;
  MESHARD_ASSIGN_OR_RETURN(point.secret, random_bytes(32));
  MESHARD_ASSIGN_OR_RETURN(point.listener,
                           Listener::open({.path = {}, .host = one_machine ? "127.0.0.1" : ""}));
  int port = point.listener->address().port;
  if (one_machine) return point;
  for (std::string& host : interface_addresses())
    point.addresses.push_back({.path = {}, .host = std::move(host), .port = port});
  point.addresses.push_back({.path = {}, .host = host_name(), .port = port});
  return point;
}

Invitation invitation_to(const Result<MeetingPoint>& point) {
  if (!point.ok()) return {.error = point.error().message()};
  Invitation invitation{.secret = point->secret,
                        .loopback = cat("127.0.0.1:", point->listener->address().port)};
  for (const ProcessAddress& address : point->addresses)
    invitation.addresses.push_back(address.to_string());
  return invitation;
}

Result<MeetingPoint> accepted(const Invitation& invitation, bool same_machine) {
  if (!invitation.error.empty())
    return Error(ErrorCode::kUnavailable, cat("process 0 failed to listen: ", invitation.error));
  std::vector<std::string> texts = invitation.addresses;
  if (same_machine) texts.insert(texts.begin(), invitation.loopback);
  MeetingPoint point;
  point.secret = invitation.secret;
  for (const std::string& text : texts) {
    MESHARD_ASSIGN_OR_RETURN(ProcessAddress address, ProcessAddress::parse(text));
    point.addresses.push_back(std::move(address));
  }
  return point;
}

/// Gives all processes the text of process 0.
Result<void> broadcast_text(Communicator& communicator, std::span<const int> all,
                            std::string& text) {
  std::uint64_t size = text.size();
  MESHARD_RETURN_IF_ERROR(communicator.broadcast(all, 0, &size, sizeof size));
  text.resize(size);
  return communicator.broadcast(all, 0, text.data(), text.size());
}

}  // namespace

Result<MeetingPoint> agree_on_meeting_point(Communicator& communicator) {
  std::vector<int> all(static_cast<std::size_t>(communicator.size()));
  std::iota(all.begin(), all.end(), 0);
  MachineName own = own_machine();
  std::vector<MachineName> machines(all.size());
  MESHARD_RETURN_IF_ERROR(communicator.all_gather(all, own.data(), machines.data(), sizeof own));
  bool one_machine = std::all_of(machines.begin(), machines.end(),
                                 [&](const MachineName& each) { return each == machines[0]; });
  std::string bytes;
  Result<MeetingPoint> listening = MeetingPoint{};
  if (communicator.rank() == 0) {
    listening = listen_here(one_machine);
    bytes = to_packed(invitation_to(listening));
  }
  MESHARD_RETURN_IF_ERROR(broadcast_text(communicator, all, bytes));
  if (!listening.ok()) return listening.error();
  MESHARD_ASSIGN_OR_RETURN(Invitation invitation, from_packed<Invitation>(bytes, "processes"));
  MESHARD_ASSIGN_OR_RETURN(MeetingPoint point, accepted(invitation, own == machines[0]));
  if (listening->listener) point.listener = std::move(listening->listener);
  return point;
}

}  // namespace meshard::internal
