#include "meshard/processes/internal/meeting_point.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/handshake.h"

namespace meshard::internal {
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
