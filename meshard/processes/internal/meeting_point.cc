#include "meshard/processes/internal/meeting_point.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/hmac.h"
#include "meshard/processes/internal/message.h"

namespace meshard::internal {
namespace {

// Sizes that are the same in all processes.
using MachineName = std::array<char, 128>;
using Invitation = std::array<char, 8192>;

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

/// Error text, secret, port, addresses.
Invitation invitation_to(const Result<MeetingPoint>& point) {
  std::string text;
  append_field(text, point.ok() ? "" : point.error().message());
  if (point.ok()) {
    append_field(text, point->secret);
    append_field(text, cat("127.0.0.1:", point->listener->address().port));
    for (const ProcessAddress& address : point->addresses) append_field(text, address.to_string());
  }
  Invitation invitation{};
  std::memcpy(invitation.data(), text.data(), std::min(text.size(), invitation.size()));
  return invitation;
}

Result<MeetingPoint> read_invitation(const Invitation& invitation, bool same_machine) {
  std::string_view rest(invitation.data(), invitation.size());
  Error malformed(ErrorCode::kInternal, "[processes] malformed invitation of process 0");
  auto error = take_field(rest);
  if (!error) return malformed;
  if (!error->empty())
    return Error(ErrorCode::kUnavailable, cat("process 0 failed to listen: ", *error));
  auto secret = take_field(rest), local = take_field(rest);
  if (!secret || !local) return malformed;
  MeetingPoint point;
  point.secret = *std::move(secret);
  MESHARD_ASSIGN_OR_RETURN(ProcessAddress loopback, ProcessAddress::parse(*local));
  if (same_machine) point.addresses.push_back(std::move(loopback));
  // Zeros fill the rest, which are empty fields.
  for (auto text = take_field(rest); text && !text->empty(); text = take_field(rest)) {
    MESHARD_ASSIGN_OR_RETURN(ProcessAddress address, ProcessAddress::parse(*text));
    point.addresses.push_back(std::move(address));
  }
  return point;
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
  Invitation invitation{};
  Result<MeetingPoint> listening = MeetingPoint{};
  if (communicator.rank() == 0) {
    listening = listen_here(one_machine);
    invitation = invitation_to(listening);
  }
  MESHARD_RETURN_IF_ERROR(communicator.broadcast(all, 0, invitation.data(), invitation.size()));
  if (!listening.ok()) return listening.error();
  MESHARD_ASSIGN_OR_RETURN(MeetingPoint point, read_invitation(invitation, own == machines[0]));
  if (listening->listener) point.listener = std::move(listening->listener);
  return point;
}

}  // namespace meshard::internal
