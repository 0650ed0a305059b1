// Buffers of one array on several devices, and launches with them.
#include "meshard/pjrt/buffer_list.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

class BufferLists : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    ::setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
    if (GetParam().path.empty()) GTEST_SKIP() << "no CPU plugin was found";
    if (GetParam().is_fake) {
      FakeControl control(GetParam().path);
      control.reset();
      control.set_platform("cpu");
    }
    client_ = make_client(Plugin::load(GetParam().path).value());
  }
  const Client& client() const { return *client_; }
  const Device& device(std::size_t i) const { return *client().addressable_devices()[i]; }
  std::int64_t live_bytes() const {
    std::int64_t bytes = 0;
    for (const Device* each : client().addressable_devices()) bytes += each->live_bytes();
    return bytes;
  }
  /// A list with the values {k, 1} on device ids[k].
  BufferList numbers(std::vector<std::size_t> ids) const {
    std::vector<Buffer> buffers;
    for (std::size_t id : ids)
      buffers.push_back(send(client(), device(id), {static_cast<float>(id), 1}));
    return BufferList::of(buffers);
  }
  std::optional<Client> client_;
};

INSTANTIATE_TEST_SUITE_P(Plugins, BufferLists, ::testing::ValuesIn(subjects()),
                         [](const auto& one) { return one.param.name; });

TEST_P(BufferLists, OwnWhatTheBuffersOwned) {
  BufferList empty;
  EXPECT_FALSE(empty);
  EXPECT_FALSE(empty.is_live());
  EXPECT_TRUE(throws_error([&] { empty.delete_now().value(); }, ErrorCode::kInvalidArgument,
                           {"the buffer list is empty"}));
  std::vector<Buffer> buffers;
  for (std::size_t id : {3u, 1u})
    buffers.push_back(send(client(), device(id), {static_cast<float>(id), 1}));
  std::int64_t before = live_bytes();
  std::optional<HostView> view;
  if (auto shown = buffers[1].host_view(); shown.ok()) view = *std::move(shown);
  BufferList list = BufferList::of(buffers);
  EXPECT_FALSE(buffers[0]);
  EXPECT_EQ(live_bytes(), before);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list.type().to_string(), "f32[2]");
  EXPECT_EQ(&list.devices()[0], &device(3));
  EXPECT_EQ(&list[1].device(), &device(1));
  EXPECT_EQ(read_all<float>(list[0]), (std::vector<float>{3, 1}));
  BufferList moved = std::move(list);
  EXPECT_FALSE(list);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved.is_live());
  EXPECT_EQ(read_all<float>(moved[1]), (std::vector<float>{1, 1}));
  moved = BufferList();
  EXPECT_EQ(live_bytes(), before - 16);
  // A view that was made before keeps its bytes.
  if (view) {
    EXPECT_EQ(reinterpret_cast<const float*>(view->bytes().data())[1], 1);
  }
}

TEST_P(BufferLists, ViewsOutliveThem) {
  BufferList list = numbers({0, 1, 2});
  std::vector<HostView> views;
  for (std::size_t i : {2u, 0u, 2u}) {
    auto shown = list[i].host_view();
    if (!shown.ok()) GTEST_SKIP() << shown.error().message();
    views.push_back(*std::move(shown));
  }
  list = BufferList();
  auto first = [](const HostView& view) {
    return *reinterpret_cast<const float*>(view.bytes().data());
  };
  EXPECT_EQ(first(views[0]), 2);
  EXPECT_EQ(first(views[1]), 0);
  EXPECT_EQ(first(views[2]), 2);
  if (GetParam().is_fake) {
    EXPECT_EQ(FakeControl(GetParam().path).external_references(), 3);
    views.clear();
    EXPECT_EQ(FakeControl(GetParam().path).external_references(), 0);
  }
}

TEST_P(BufferLists, AreSplit) {
  BufferList list = numbers({0, 2, 1});
  std::int64_t before = live_bytes();
  std::optional<HostView> view;
  if (auto shown = list[1].host_view(); shown.ok()) view = *std::move(shown);
  std::vector<Buffer> buffers = std::move(list).split();
  EXPECT_FALSE(list);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(live_bytes(), before);
  ASSERT_EQ(buffers.size(), 3u);
  const int ids[] = {0, 2, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(buffers[i].is_live());
    EXPECT_EQ(&buffers[i].device(), &device(static_cast<std::size_t>(ids[i])));
    EXPECT_EQ(read_all<float>(buffers[i])[0], static_cast<float>(ids[i]));
  }
  // Two of them make another list.
  std::swap(buffers[0], buffers[2]);
  BufferList two = BufferList::of(std::span(buffers).first(2));
  EXPECT_EQ(read_all<float>(two[0])[0], 1);
  EXPECT_EQ(live_bytes(), before);
  two = BufferList();
  EXPECT_EQ(live_bytes(), before - 16);
  buffers.clear();
  EXPECT_EQ(live_bytes(), before - 24);
  // A view that was made before keeps its bytes.
  if (view) {
    EXPECT_EQ(reinterpret_cast<const float*>(view->bytes().data())[0], 2);
  }
  if (GetParam().is_fake && view) {
    EXPECT_EQ(FakeControl(GetParam().path).external_references(), 1);
    view.reset();
    EXPECT_EQ(FakeControl(GetParam().path).external_references(), 0);
  }
}

TEST_P(BufferLists, OneBufferIsTheArgumentOfAProgramForItsDevice) {
  BufferList list = numbers({0, 2, 1});
  auto program = client().compile(pass_on(1, 2, false, 2), on_devices({2})).value();
  std::vector<Buffer> outputs(2);
  const auto run = [&](const LoadedExecutable& what, std::vector<BufferView> views) {
    what.execute_on_views(views, outputs).value().await().value();
  };
  run(program, {list[1], list[1]});
  EXPECT_EQ(read_all<float>(outputs[0]), (std::vector<float>{2, 1}));
  EXPECT_EQ(&outputs[1].device(), &device(2));
  EXPECT_TRUE(list.is_live());
  const ErrorCode invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error([&] { run(program, {list[1]}); }, invalid, {"takes 2", "got 1"}));
  EXPECT_TRUE(throws_error(
      [&] {
        run(program, {list[1], list[0]});
      },
      invalid, {"argument 1", "are on devices 0, the program runs on devices 2"}));
  Buffer longer = send(client(), device(2), {1, 2, 3});
  EXPECT_TRUE(throws_error(
      [&] {
        run(program, {longer, list[1]});
      },
      invalid, {"argument 0", "takes f32[2], the buffers are f32[3]"}));
  const ErrorCode refused = ErrorCode::kFailedPrecondition;
  auto donating = client().compile(pass_on(1, 2, true, 2), on_devices({2})).value();
  EXPECT_TRUE(throws_error(
      [&] {
        run(donating, {list[1], list[1]});
      },
      refused, {"consumes 2 arguments"}));
  auto wide = client().compile(pass_on(2, 2, false, 2), on_first(2)).value();
  EXPECT_TRUE(throws_error([&] { run(wide, {list[0], list[0]}); }, refused, {"2 devices"}));
  list.delete_now().value();
  EXPECT_TRUE(throws_error([&] { run(program, {list[1], list[1]}); }, invalid, {"was deleted"}));
}

TEST_P(BufferLists, AreReorderedWithTheirDevices) {
  BufferList list = numbers({0, 1, 2});
  std::vector<const Device*> other = {&device(2), &device(0), &device(1)};
  const DeviceList& order = client().device_list(other);
  EXPECT_EQ(&order, &client().device_list(other)) << "one object for equal lists";
  EXPECT_NE(&order, &list.devices());
  EXPECT_EQ(list.devices().positions_of(order), (std::vector<std::uint32_t>{2, 0, 1}));
  EXPECT_FALSE(list.devices().positions_of(client().device_list(std::span(other).first(2))));
  list.reorder(order, *list.devices().positions_of(order));
  EXPECT_EQ(&list.devices(), &order);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(read_all<float>(list[i])[0], static_cast<float>(other[i]->id()));
}

TEST_P(BufferLists, AreDeletedAsAWhole) {
  BufferList list = numbers({0, 1});
  std::int64_t before = live_bytes();
  list.delete_now().value();
  EXPECT_FALSE(list.is_live());
  EXPECT_EQ(live_bytes(), before - 16);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(list[i].plugin_says_deleted().value());
    EXPECT_TRUE(throws_error([&] { list[i].await_ready().value(); }, ErrorCode::kInvalidArgument,
                             {"was deleted"}));
  }
  EXPECT_TRUE(throws_error([&] { list.delete_now().value(); }, ErrorCode::kInvalidArgument,
                           {"was deleted"}));
}

TEST_P(BufferLists, AreArgumentsAndOutputs) {
  auto program = client().compile(pass_on(4, 3), on_devices({2, 0, 3, 1})).value();
  Arguments arguments(client(), program);
  std::vector<BufferList> outputs(3);
  program.execute(arguments.pointers, outputs).value().await().value();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(&outputs[i].devices(), &program.device_list());
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(&outputs[i][k].device(), program.devices()[k]);
      EXPECT_EQ(read_all<float>(outputs[i][k]), Arguments::values(k, i));
    }
  }
  // In another order of the devices, each device still gets its own buffer.
  std::vector<const Device*> ascending = {&device(0), &device(1), &device(2), &device(3)};
  const DeviceList& order = client().device_list(ascending);
  arguments.lists[1].reorder(order, *arguments.lists[1].devices().positions_of(order));
  for (bool each : {false, true}) {
    if (each && !program.can_run_device_by_device()) continue;
    auto launch = each ? program.execute_each_device(arguments.pointers, outputs)
                       : program.execute(arguments.pointers, outputs);
    std::move(launch).value().await().value();
    for (std::size_t k = 0; k < 4; ++k)
      EXPECT_EQ(read_all<float>(outputs[1][k]), Arguments::values(k, 1));
  }
}

TEST_P(BufferLists, ThatDoNotFitAreFoundBeforeThePluginIsCalled) {
  auto program = client().compile(pass_on(2, 2), on_first(2)).value();
  Arguments good(client(), program);
  BufferList empty, deleted = numbers({0, 1}), wrong_type = numbers({0, 1});
  deleted.delete_now().value();
  Arguments elsewhere(client(), client().compile(pass_on(2, 1), on_devices({0, 5})).value());
  Client other = make_client(Plugin::load(GetParam().path).value(), 2);
  Arguments foreign(other, other.compile(pass_on(2, 1), on_first(2)).value());
  std::vector<BufferList> outputs(2);
  auto with = [&](const BufferList* second) {
    return [&, second] {
      auto pointers = good.pointers;
      pointers[1] = second;
      (void)program.execute(pointers, outputs).value();
    };
  };
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(with(nullptr), invalid, {"argument 1: the list is null"}));
  EXPECT_TRUE(throws_error(with(&empty), invalid, {"argument 1: the list is empty"}));
  EXPECT_TRUE(throws_error(with(&deleted), invalid, {"was deleted"}));
  EXPECT_TRUE(throws_error(with(&wrong_type), invalid, {"takes f32[4], the buffers are f32[2]"}));
  std::vector<Buffer> square, whole;
  const std::vector<std::int32_t> numbers(4);
  const std::vector<std::int64_t> four = {4};
  for (std::size_t k = 0; k < 2; ++k) {
    square.push_back(send(client(), device(k), {1, 2, 3, 4}, {2, 2}));
    whole.push_back(
        std::move(client()
                      .buffer_from_host({numbers.data(), ElementType::kS32, four},
                                        HostSemantics::kImmutableOnlyDuringCall, device(k))
                      .value()
                      .buffer));
  }
  const BufferList squares = BufferList::of(square), integers = BufferList::of(whole);
  EXPECT_TRUE(throws_error(with(&squares), invalid, {"takes f32[4], the buffers are f32[2,2]"}));
  EXPECT_TRUE(throws_error(with(&integers), invalid, {"takes f32[4], the buffers are s32[4]"}));
  EXPECT_TRUE(throws_error(with(elsewhere.pointers[0]), invalid,
                           {"are on devices 0,5, the program runs on devices 0,1"}));
  EXPECT_TRUE(throws_error(with(foreign.pointers[0]), invalid, {"another client"}));
  std::span<const BufferList* const> all(good.pointers);
  EXPECT_TRUE(throws_error([&] { (void)program.execute(all.first(1), outputs).value(); }, invalid,
                           {"takes 2 arguments, got 1"}));
  std::vector<BufferList> too_few(1);
  EXPECT_TRUE(throws_error([&] { (void)program.execute(all, too_few).value(); }, invalid,
                           {"returns 2 outputs, got space for 1"}));
  // The client still works, because none of these calls reached the plugin, which some would wedge.
  program.execute(all, outputs).value().await().value();
  if (GetParam().is_fake) {
    EXPECT_EQ(FakeControl(GetParam().path).invalid_calls(), 0);
  }
}

TEST_P(BufferLists, AreDonatedAsAWhole) {
  auto program = client().compile(pass_on(2, 2, true), on_first(2)).value();
  Arguments arguments(client(), program);
  std::int64_t before = live_bytes();
  std::vector<BufferList> outputs(2);
  std::vector<const BufferList*> twice = {arguments.pointers[0], arguments.pointers[0]};
  EXPECT_TRUE(throws_error([&] { (void)program.execute(twice, outputs).value(); },
                           ErrorCode::kInvalidArgument, {"argument 1: ", "passed twice"}));
  EXPECT_TRUE(arguments.lists[0].is_live());
  program.execute(arguments.pointers, outputs).value().await().value();
  EXPECT_EQ(live_bytes(), before);
  for (const BufferList& list : arguments.lists) {
    EXPECT_TRUE(list.is_donated());
    EXPECT_TRUE(throws_error([&] { list[1].await_ready().value(); }, ErrorCode::kInvalidArgument,
                             {"was donated"}));
  }
  EXPECT_TRUE(throws_error([&] { (void)program.execute(arguments.pointers, outputs).value(); },
                           ErrorCode::kInvalidArgument, {"was donated"}));
}

TEST_P(BufferLists, OfAFailedLaunchStayAlive) {
  if (!GetParam().is_fake) GTEST_SKIP() << "only the fake plugin fails on request";
  auto program = client().compile(pass_on(2, 2, true), on_first(2)).value();
  Arguments arguments(client(), program);
  std::int64_t before = live_bytes();
  FakeControl(GetParam().path).fail_at("PJRT_LoadedExecutable_Execute", 1, 13, "no");
  std::vector<BufferList> outputs(2);
  EXPECT_FALSE(program.execute(arguments.pointers, outputs).ok());
  for (const BufferList& list : arguments.lists) EXPECT_TRUE(list.is_live());
  EXPECT_EQ(live_bytes(), before);
}

TEST_P(BufferLists, OfALaunchInFlightWaitForItsEvents) {
  auto program = client().compile(pass_on(2, 2), on_first(2)).value();
  Arguments arguments(client(), program);
  EXPECT_FALSE(arguments.lists[0].await_launch()) << "they are no results";
  if (!GetParam().is_fake) GTEST_SKIP() << "only the fake plugin holds launches";
  FakeControl control(GetParam().path);
  std::vector<BufferList> outputs(2);
  control.hold_runs(1);
  program.execute(arguments.pointers, outputs).value();
  int events = control.call_count("PJRT_Buffer_ReadyEvent");
  std::atomic<bool> released = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    released = true;
    control.hold_runs(0);
  });
  EXPECT_TRUE(outputs[1].await_launch());
  EXPECT_TRUE(released);
  other.join();
  EXPECT_TRUE(outputs[0].await_launch()) << "the other result of the same launch";
  EXPECT_EQ(control.call_count("PJRT_Buffer_ReadyEvent"), events);
  EXPECT_EQ(read_all<float>(outputs[1][1]), Arguments::values(1, 1));

  control.set_run_time(1000);
  control.fail_runs(13);
  program.execute(arguments.pointers, outputs).value();
  EXPECT_FALSE(outputs[0].await_launch());
  EXPECT_FALSE(outputs[0][0].await_ready().ok());
  control.fail_runs(0);
}

TEST_P(BufferLists, OfALaunchThatIsTooOldToBeKnownSaySo) {
  auto program = client().compile(pass_on(2, 2), on_first(2)).value();
  Arguments arguments(client(), program);
  std::vector<BufferList> old(2), outputs(2);
  program.execute(arguments.pointers, old).value();
  EXPECT_TRUE(old[0].await_launch());
  bool known = true;
  for (int i = 0; i < 1000 && known; ++i) {
    program.execute(arguments.pointers, outputs).value();
    EXPECT_TRUE(outputs[1].await_launch());
    known = old[1].await_launch();
    EXPECT_TRUE(known || i >= 8) << "after " << i << " others";
  }
  EXPECT_FALSE(known);
  EXPECT_TRUE(old[1][0].await_ready().ok());
  EXPECT_TRUE(outputs[0].await_launch());
}

// The record of a launch that was waited for is used by the next one.
TEST_P(BufferLists, OfALaunchAfterOneThatWasAwaitedHaveTheirOwnOutcome) {
  if (!GetParam().is_fake) GTEST_SKIP() << "only the fake plugin fails on request";
  FakeControl control(GetParam().path);
  auto program = client().compile(pass_on(1, 1), on_first(1)).value();
  Arguments arguments(client(), program);
  std::vector<BufferList> outputs(1);
  client().await_launches();
  outputs.clear();
  outputs.resize(1);
  int objects = control.live_objects();
  bool ended = false;
  const LaunchOptions asking{.track = false, .ended = &ended};
  auto launch_late = [&] {
    control.hold_runs(1);
    program.execute(arguments.pointers, outputs, asking).value();
    EXPECT_FALSE(ended);
    control.hold_runs(0);
  };
  for (int i = 0; i < 10; ++i) {
    launch_late();
    ASSERT_TRUE(outputs[0].await_launch());
    ASSERT_TRUE(outputs[0].await_launch()) << "again: its record is gone, but not its success";
  }
  control.fail_runs(13);
  launch_late();
  EXPECT_FALSE(outputs[0].await_launch());
  EXPECT_FALSE(outputs[0][0].await_ready().ok());
  control.fail_runs(0);
  launch_late();
  EXPECT_TRUE(outputs[0].await_launch());
  EXPECT_EQ(read_all<float>(outputs[0][0]), Arguments::values(0, 0));
  program.execute(arguments.pointers, outputs, asking).value();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(outputs[0].await_launch()) << "it was over when it was made";
  outputs.clear();
  client().await_launches();
  EXPECT_EQ(control.live_objects(), objects);
}

TEST_P(BufferLists, AreDestroyedInBatches) {
  auto program = client().compile(pass_on(2, 3), on_first(2)).value();
  Arguments arguments(client(), program);
  EXPECT_FALSE(BufferBatch::takes(arguments.lists[0])) << "no launch returned it";
  client().await_launches();
  const std::int64_t bytes = live_bytes();
  const bool counts = GetParam().is_fake;
  const int objects = counts ? FakeControl(GetParam().path).live_objects() : 0;
  {
    std::vector<BufferList> outputs = execute(program, arguments.pointers).value().outputs;
    BufferBatch batch;
    for (std::size_t i : {0u, 2u}) {
      ASSERT_TRUE(BufferBatch::takes(outputs[i]));
      batch.add(outputs[i]);
      EXPECT_FALSE(outputs[i]);
    }
    EXPECT_EQ(batch.size(), 4u);
    EXPECT_EQ(batch.bytes(), 64u);
    EXPECT_EQ(batch.devices(), &program.device_list());
    EXPECT_EQ(live_bytes(), bytes + 96) << "counted until they are destroyed";
    outputs.clear();
    BufferBatch moved = std::move(batch);
    EXPECT_EQ(live_bytes(), bytes + 64);
    moved.destroy_on(1);
    moved.destroy_on(0);
    moved.forget();
    EXPECT_EQ(live_bytes(), bytes);
    outputs = execute(program, arguments.pointers).value().outputs;
    moved.add(outputs[1]);
    outputs[0].delete_now().value();
    EXPECT_FALSE(BufferBatch::takes(outputs[0])) << "it is deleted";
  }
  client().await_launches();
  EXPECT_EQ(live_bytes(), bytes);
  if (counts) {
    EXPECT_EQ(FakeControl(GetParam().path).live_objects(), objects);
  }
}

}  // namespace
}  // namespace meshard::pjrt
