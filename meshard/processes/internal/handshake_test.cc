#include "meshard/processes/internal/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard::internal {
namespace {

using testing::HasSubstr;

const std::string kMemberChallenge(32, 'm');
const std::string kServerChallenge(32, 's');

TEST(Handshake, BothSidesAccept) {
  ServerHandshake server("secret", 4, kServerChallenge);
  MemberHandshake member("secret", 2, kMemberChallenge);
  Message challenge = server.receive(member.hello());
  Message proof = *member.receive(challenge).value();
  EXPECT_FALSE(server.accepted());
  Message accept = server.receive(proof);
  EXPECT_TRUE(server.accepted());
  EXPECT_EQ(server.rank(), 2);
  EXPECT_FALSE(member.accepted());
  EXPECT_EQ(member.receive(accept).value(), std::nullopt);
  EXPECT_TRUE(member.accepted());
  for (const Message& sent : {member.hello(), challenge, proof, accept})
    EXPECT_THAT(sent.name + sent.value, testing::Not(HasSubstr("secret")));
}

TEST(Handshake, WrongSecretOfTheMember) {
  ServerHandshake server("secret", 4, kServerChallenge);
  MemberHandshake member("Secret", 2, kMemberChallenge);
  Message answer = server.receive(*member.receive(server.receive(member.hello())).value());
  EXPECT_FALSE(server.accepted());
  Error error = member.receive(answer).error();
  EXPECT_EQ(error.code(), ErrorCode::kUnauthenticated);
  EXPECT_THAT(error.message(), HasSubstr("the secret is not that of process 0"));
}

TEST(Handshake, ServerThatDoesNotKnowTheSecret) {
  MemberHandshake member("secret", 1, kMemberChallenge);
  Message proof =
      *member.receive({.kind = MessageKind::kChallenge, .value = kServerChallenge}).value();
  // Sending the member's own code back does not help.
  Error error = member.receive({.kind = MessageKind::kAccept, .value = proof.value}).error();
  EXPECT_EQ(error.code(), ErrorCode::kUnauthenticated);
  EXPECT_FALSE(member.accepted());
}

TEST(Handshake, ProofIsOfOneRankAndOneConnection) {
  MemberHandshake member("secret", 1, kMemberChallenge);
  Message proof =
      *member.receive({.kind = MessageKind::kChallenge, .value = kServerChallenge}).value();
  ServerHandshake later("secret", 4, std::string(32, 't'));
  later.receive(member.hello());
  EXPECT_EQ(later.receive(proof).kind, MessageKind::kRefuse);
  ServerHandshake other_rank("secret", 4, kServerChallenge);
  Message hello = member.hello();
  hello.number = 2;
  other_rank.receive(hello);
  EXPECT_EQ(other_rank.receive(proof).kind, MessageKind::kRefuse);
}

TEST(Handshake, InvalidFirstMessages) {
  Message hello = MemberHandshake("secret", 1, kMemberChallenge).hello();
  auto answer = [](Message message) {
    return ServerHandshake("secret", 4, kServerChallenge).receive(message);
  };
  EXPECT_EQ(answer(hello).kind, MessageKind::kChallenge);
  for (int rank : {-1, 4}) {
    Message other = hello;
    other.number = rank;
    EXPECT_THAT(answer(other).name, HasSubstr("is out of range for a run of 4"));
  }
  Message old = hello;
  old.name = "meshard processes 0";
  EXPECT_THAT(answer(old).name, HasSubstr("another version"));
  EXPECT_EQ(answer({.kind = MessageKind::kProof}).kind, MessageKind::kRefuse);
  EXPECT_EQ(answer({.kind = MessageKind::kPut, .name = "k"}).kind, MessageKind::kRefuse);
}

}  // namespace
}  // namespace meshard::internal
