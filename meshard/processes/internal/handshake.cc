#include "meshard/processes/internal/handshake.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/base/sha256.h"

namespace meshard::internal {
namespace {

constexpr std::size_t kHashBlock = 64;

std::string sha256_bytes(std::string_view first, std::string_view second) {
  Sha256 hash;
  hash.add(first);
  hash.add(second);
  return hash.bytes();
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string inner(key.size() > kHashBlock ? sha256_bytes(key, "") : std::string(key));
  inner.resize(kHashBlock, '\0');
  std::string outer = inner;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return sha256_bytes(outer, sha256_bytes(inner, message));
}

bool equal_codes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

Result<std::string> random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error(ErrorCode::kUnavailable,
                   cat("[processes] no random numbers: ", std::strerror(errno)));
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

namespace {

constexpr std::size_t kChallengeBytes = 32;

std::string code_of(std::string_view secret, std::string_view label, int rank,
                    std::string_view member_challenge, std::string_view server_challenge) {
  std::string text;
  const std::string number = cat(rank);
  for (std::string_view part :
       {kMessageVersion, label, std::string_view(number), member_challenge, server_challenge})
    append(text, cat(part.size(), ' ', part));  // so that no two lists have one text
  return hmac_sha256(secret, text);
}

constexpr std::string_view kMemberLabel = "member";
constexpr std::string_view kServerLabel = "process 0";

}  // namespace

Message refusal(ErrorCode code, std::string reason) {
  return {
      .kind = MessageKind::kRefuse, .number = static_cast<int>(code), .name = std::move(reason)};
}

Message ServerHandshake::receive(const Message& message) {
  if (message.kind == MessageKind::kHello && member_challenge_.empty()) {
    if (message.name != kMessageVersion)
      return refusal(ErrorCode::kFailedPrecondition,
                     cat("process 0 runs another version of meshard: ", kMessageVersion));
    if (message.number < 0 || message.number >= size_ || message.value.size() != kChallengeBytes)
      return refusal(ErrorCode::kInvalidArgument,
                     cat("rank ", message.number, " is out of range for a run of ", size_));
    rank_ = static_cast<int>(message.number);
    member_challenge_ = message.value;
    return {.kind = MessageKind::kChallenge, .value = challenge_};
  }
  if (message.kind != MessageKind::kProof || member_challenge_.empty() || accepted_)
    return refusal(ErrorCode::kInvalidArgument, "unexpected message");
  if (!equal_codes(message.value,
                   code_of(secret_, kMemberLabel, rank_, member_challenge_, challenge_)))
    return refusal(ErrorCode::kUnauthenticated, "the secret is not that of process 0");
  accepted_ = true;
  return {.kind = MessageKind::kAccept,
          .value = code_of(secret_, kServerLabel, rank_, member_challenge_, challenge_)};
}

Message MemberHandshake::hello() const {
  return {.kind = MessageKind::kHello,
          .number = rank_,
          .name = std::string(kMessageVersion),
          .value = challenge_};
}

Result<std::optional<Message>> MemberHandshake::receive(const Message& message) {
  if (message.kind == MessageKind::kRefuse) {
    bool known = message.number >= 1 && message.number <= 16;
    return Error(known ? static_cast<ErrorCode>(message.number) : ErrorCode::kUnknown,
                 cat("[processes] process 0 refused process ", rank_, ": ", message.name));
  }
  if (message.kind == MessageKind::kChallenge && server_challenge_.empty() &&
      message.value.size() == kChallengeBytes) {
    server_challenge_ = message.value;
    return std::optional<Message>(
        {.kind = MessageKind::kProof,
         .value = code_of(secret_, kMemberLabel, rank_, challenge_, server_challenge_)});
  }
  if (message.kind != MessageKind::kAccept || server_challenge_.empty() || accepted_)
    return Error(ErrorCode::kInvalidArgument,
                 "[processes] the program at the address is not process 0 of a meshard run");
  if (!equal_codes(message.value,
                   code_of(secret_, kServerLabel, rank_, challenge_, server_challenge_)))
    return Error(ErrorCode::kUnauthenticated,
                 "[processes] the program at the address does not know the secret of the run");
  accepted_ = true;
  return std::optional<Message>();
}

}  // namespace meshard::internal
