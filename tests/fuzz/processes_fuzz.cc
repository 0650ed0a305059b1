#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/coordinator.h"
#include "meshard/processes/internal/handshake.h"
#include "tests/fuzz/byte_source.h"

namespace {

using namespace meshard;
using namespace meshard::internal;

constexpr int kMembers = 3;

/// The messages of a stream, which arrives in pieces. @return false after malformed bytes
bool read_all(MessageReader& reader, std::vector<Message>& messages) {
  for (;;) {
    Result<std::optional<Message>> message = reader.next();
    if (!message.ok()) return false;
    if (!*message) return true;
    messages.push_back(**std::move(message));
  }
}

/// What process 0 sends must fit into messages, and losses must be readable.
void check_outgoing(Coordinator& coordinator, const std::string& bytes) {
  for (auto& [rank, message] : coordinator.take_outgoing()) {
    fuzz_check(rank >= 0 && rank < kMembers, "only members receive", bytes);
    MessageReader reader(kMostMemberBytes);
    reader.add(encode(message));
    Result<std::optional<Message>> again = reader.next();
    fuzz_check(again.ok() && *again == message, "what is sent can be read", bytes);
    if (message.kind == MessageKind::kLost)
      fuzz_check(from_packed<ProcessLoss>(message.value, "fuzz").ok(), "a loss can be read", bytes);
  }
}

}  // namespace

// Any bytes are messages or rejected, whatever the pieces in which they arrive. No messages upset
// process 0: neither those of strangers nor those of members, in any order, with connections that
// close and time that passes. The rank and the time come from the bytes of the message itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::vector<Message> messages, piecewise;
  MessageReader whole(kMostMemberBytes), pieces(kMostMemberBytes);
  whole.add(bytes);
  bool good = read_all(whole, messages), good_pieces = true;
  for (std::size_t at = 0; at < size && good_pieces; at += 1 + at % 7) {
    pieces.add(std::string_view(bytes).substr(at, 1 + at % 7));
    good_pieces = read_all(pieces, piecewise);
  }
  fuzz_check(good == good_pieces && messages == piecewise, "pieces do not matter", bytes);
  std::string again;
  for (const Message& message : messages) again += encode(message);
  fuzz_check(bytes.starts_with(again), "encode(read(bytes)) = bytes", bytes);

  ServerHandshake handshake("a secret that is not in the corpus", kMembers, std::string(32, 's'));
  for (const Message& message : messages) handshake.receive(message);
  fuzz_check(!handshake.accepted(), "strangers are not accepted", bytes);

  ProcessClock::time_point now{};
  Coordinator coordinator(kMembers, {}, now);
  bool open[kMembers] = {};
  for (const Message& message : messages) {
    int rank = static_cast<int>(message.request % kMembers);
    now += std::chrono::milliseconds(message.request / kMembers % 2000);
    if (!open[rank]) open[rank] = coordinator.connected(rank, now).empty();
    if (open[rank] && (message.request % 64 == 63 || !coordinator.receive(rank, message, now))) {
      coordinator.closed(rank, now);
      open[rank] = false;
    }
    coordinator.advance(now);
    fuzz_check(coordinator.next_step(now).count() >= 0, "the next step is not in the past", bytes);
    check_outgoing(coordinator, bytes);
  }
  return 0;
}
