// Launches that fill queues, fail, stall or have callbacks, on the fake plugin.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "meshard/base/advice.h"
#include "meshard/base/stall_report.h"
#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

using std::chrono::milliseconds;

class Launches : public ::testing::Test {
 protected:
  Launches() : fake_(MESHARD_FAKE_PLUGIN) { fake_.reset(); }
  ~Launches() override {
    finish_callbacks();
    EXPECT_EQ(fake_.live_objects(), 0) << "something was not freed, or twice";
    fake_.reset();
  }
  Plugin plugin() const { return Plugin::adopt(fake_.api()).value(); }
  FakeControl fake_;
};

// A launch that completes inside the call leaves its record for the next launch to use.
TEST_F(Launches, ARefusedLaunchAfterOneThatWasDoneAtOnceFreesNothingTwice) {
  fake_.set_platform("cpu");
  Client client = make_client(plugin(), 1);
  auto program = client.compile(pass_on(1, 1), on_first(1)).value();
  Arguments arguments(client, program);
  std::vector<BufferList> outputs(1);
  for (int i = 0; i < 3; ++i) {
    bool ended = false;
    const LaunchOptions asking{.track = false, .ended = &ended};
    ASSERT_TRUE(program.execute(arguments.pointers, outputs, asking).ok());
    EXPECT_TRUE(ended);
    EXPECT_EQ(client.launches_in_flight(), 0u);
    fake_.fail_at("PJRT_LoadedExecutable_Execute", 1, 8, "refused on purpose");
    EXPECT_EQ(program.execute(arguments.pointers, outputs, asking).error().code(),
              ErrorCode::kResourceExhausted);
  }
}

TEST_F(Launches, AProgramThatFailsInsideTheCallIsAnErrorOfTheCall) {
  fake_.set_platform("cpu");
  Client client = make_client(plugin(), 1);
  auto program = client.compile(pass_on(1, 1), on_first(1)).value();
  Arguments arguments(client, program);
  std::vector<BufferList> outputs(1);
  fake_.fail_runs(13);
  SourceLocation here = SourceLocation::current();
  EXPECT_TRUE(throws_error(
      [&] {
        bool ended = false;
        (void)program
            .execute(arguments.pointers, outputs, {.track = false, .where = here, .ended = &ended})
            .value();
      },
      ErrorCode::kInternal, {"as the test asked", "while running", "device 0", here.to_string()}));
}

TEST_F(Launches, ErrorsOfACallNameProgramAndDevices) {
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  fake_.fail_at("PJRT_LoadedExecutable_Execute", 1, 8, "refused on purpose");
  EXPECT_TRUE(throws_error([&] { (void)execute(program, arguments.pointers).value(); },
                           ErrorCode::kResourceExhausted,
                           {"refused on purpose", "while launching", "on 2 devices"}));
  std::vector<BufferList> outputs(1);
  fake_.fail_at("PJRT_LoadedExecutable_Execute", 2, 8, "refused on purpose");
  EXPECT_TRUE(throws_error(
      [&] { (void)program.execute_each_device(arguments.pointers, outputs).value(); },
      ErrorCode::kResourceExhausted, {"on device 1; it was already launched on device 0"}));
}

// If the parts of programs communicate, two threads that enter them in different orders on two
// devices would deadlock. This applies to every platform.
TEST_F(Launches, ProgramsWhosePartsMeetEnterOneAtATime) {
  for (const char* platform : {"cpu", "fake"}) {
    fake_.reset();
    fake_.set_platform(platform);
    fake_.set_delay("PJRT_LoadedExecutable_Execute", 3000);
    Client client = make_client(plugin(), 4);
    auto run = [&](auto& programs) {
      std::vector<std::thread> threads;
      for (auto& program : programs)
        threads.emplace_back([&] {
          Arguments arguments(client, program);
          for (int i = 0; i < 8; ++i) (void)execute(program, arguments.pointers).value();
        });
      for (std::thread& thread : threads) thread.join();
      client.await_launches();
    };
    std::vector<LoadedExecutable> pairs, singles;
    for (int t = 0; t < 4; ++t) {
      pairs.push_back(client.compile(pass_on(2, 1), on_first(2)).value());
      singles.push_back(client.compile(pass_on(1, 1), on_devices({t})).value());
    }
    run(pairs);
    EXPECT_EQ(fake_.most_launchers(), 1) << platform;
    run(singles);
    EXPECT_GT(fake_.most_launchers(), 1) << platform << ": nothing meets there";
  }
}

// The CPU plugin's queue has room for 31 launches; the next one waits for the oldest.
TEST_F(Launches, ACallbackMayLaunchAndWaitWhileTheQueueIsFull) {
  fake_.set_platform("cpu");
  fake_.set_run_time(5000);
  Client client = make_client(plugin(), 2);
  auto program = client.compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(client, program);
  std::promise<void> launched;
  Launch first = execute(program, arguments.pointers).value().launch;
  first
      .on_ready(0,
                [&](const Result<void>&) {
                  Launch again = execute(program, arguments.pointers).value().launch;
                  again.await().value();
                  launched.set_value();
                })
      .value();
  for (int i = 0; i < 100; ++i) (void)execute(program, arguments.pointers).value();
  launched.get_future().wait();
  client.await_launches();
  EXPECT_EQ(client.launches_in_flight(), 0u);
}

TEST_F(Launches, TheReleaseOfBorrowedMemoryMayLaunch) {
  Client client = make_client(plugin(), 1);
  auto program = client.compile(pass_on(1, 1), on_first(1)).value();
  Arguments arguments(client, program);
  alignas(64) float memory[4] = {1, 2, 3, 4};
  std::promise<void> launched;
  {
    Buffer view = client
                      .view_device_memory(
                          memory, {ElementType::kF32, {4}}, client.device(0),
                          [&] {
                            execute(program, arguments.pointers).value().launch.await().value();
                            launched.set_value();
                          })
                      .value();
  }
  launched.get_future().wait();
}

TEST_F(Launches, WhatACallbackThrowsBecomesAdvice) {
  std::mutex mutex;
  std::vector<std::string> texts;
  set_advice_handler([&](const Advice& advice) {
    std::lock_guard lock(mutex);
    texts.push_back(advice.text);
  });
  Client client = make_client(plugin(), 1);
  Buffer buffer = send(client, client.device(0), {1});
  buffer.ready_event()
      .value()
      .on_ready([](const Result<void>&) { throw std::runtime_error("thrown on purpose"); })
      .value();
  finish_callbacks();
  set_advice_handler({});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("thrown on purpose"), std::string::npos) << texts[0];
}

TEST_F(Launches, AWaitThatIsTooLongSaysWhatIsInFlight) {
  std::promise<Stall> reported;
  std::atomic<int> reports = 0;
  set_stall_time(milliseconds(10));
  set_stall_handler([&](const Stall& stall) {
    if (reports++ == 0) reported.set_value(stall);
  });
  fake_.set_run_time(300'000);
  Client client = make_client(plugin(), 4);
  auto program = client.compile(pass_on(2, 1), on_devices({2, 3})).value();
  Arguments arguments(client, program);
  SourceLocation here = SourceLocation::current();
  auto result = execute(program, arguments.pointers, {.where = here}).value();
  result.outputs[0][1].await_ready().value();
  std::string text = reported.get_future().get().text;
  EXPECT_EQ(reports, 1) << "once for each wait";
  for (const std::string& part :
       {std::string("f32[4] on device 3"), std::string("in flight:"), std::string("devices 2,3"),
        "launched at " + here.to_string(), std::string("not finished on 2 3")})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  set_stall_handler({});
  set_stall_time(std::chrono::seconds(60));
}

}  // namespace
}  // namespace meshard::pjrt
