#include "bench/peers/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace meshard::bench {
namespace {

// Answers `prepare` and `run` like a peer. The work `dies` ends the process.
const char* const kServer = R"(
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "prepare" and request["work"] == "dies": sys.exit(3)
    elif request["do"] == "prepare" and request["work"] == "fails": answer = {"error": "ValueError: no"}
    elif request["do"] == "prepare": answer = {"ok": {"id": 7, "long": "x" * request["with"]["size"]}}
    elif request["do"] == "run": answer = {"ok": {"seconds": [0.25 * request["id"]]}}
    else: answer = {"ok": {}}
    print(json.dumps(answer), flush=True)
)";

std::vector<std::string> server() { return {"python3", "-c", kServer}; }

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const PeerError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Peer, RunsAWork) {
  Peer peer(server());
  PeerWork work(peer, "works", {{"size", 100000}});
  EXPECT_EQ(work.facts().at("long").get<std::string>().size(), 100000);
  EXPECT_EQ(work.run(), 1.75);
  EXPECT_EQ(work.run(), 1.75);
}

TEST(Peer, AnErrorIsThePeersAndTheNextWorkRuns) {
  Peer peer(server());
  EXPECT_EQ(error_of([&] { PeerWork(peer, "fails", {{"size", 1}}); }), "ValueError: no");
  EXPECT_EQ(PeerWork(peer, "works", {{"size", 1}}).run(), 1.75);
}

TEST(Peer, AProcessThatEndsIsAnError) {
  Peer peer(server());
  EXPECT_EQ(error_of([&] { PeerWork(peer, "dies"); }), "python3 has ended");
  EXPECT_EQ(error_of([&] { PeerWork(peer, "works"); }), "python3 has ended");
}

TEST(Peer, OtherProgramsAreErrors) {
  EXPECT_THAT(error_of([] { Peer peer({"/no/such/program"}); }),
              testing::StartsWith("/no/such/program cannot be started: "));
  Peer peer(
      {"sh", "-c", "read request; echo hello"});  // reads first, so that the request can be written
  EXPECT_EQ(error_of([&] { peer.ask({}); }), "sh did not answer in JSON");
}

}  // namespace
}  // namespace meshard::bench
