// What meshard/pjrt requires of every plugin. Each test also runs on the fake plugin.
#include <atomic>
#include <thread>

#include "meshard/hlo/module.h"
#include "meshard/pjrt/topology.h"
#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard::pjrt {
namespace {

INSTANTIATE_TEST_SUITE_P(Plugins, PluginTest, ::testing::ValuesIn(subjects()),
                         [](const auto& one) { return one.param.name; });

TEST_P(PluginTest, TellsItsVersionsAndDevices) {
  EXPECT_EQ(plugin().version().major, 0);
  EXPECT_GE(plugin().version(), oldest_api_version());
  EXPECT_EQ(plugin(), Plugin::load(GetParam().path).value()) << "loaded once";
  EXPECT_FALSE(plugin().newest_stablehlo().empty());
  ASSERT_EQ(client().addressable_devices().size(), 8u);
  for (const Device* one : client().addressable_devices()) {
    EXPECT_EQ(client().find_device(one->id()), one);
    EXPECT_TRUE(one->addressable());
    EXPECT_FALSE(one->to_string().empty());
    EXPECT_FALSE(one->description().kind().value().empty());
    EXPECT_EQ(one->default_memory().value().kind(), one->memories().value()[0].kind());
  }
  EXPECT_EQ(client().find_device(12345), nullptr);
}

TEST_P(PluginTest, RefusesClientOptionsThatThePluginWouldMisread) {
  auto create = [&](NamedValue option) {
    return [this, option] { Client::create(plugin(), {&option, 1}).value(); };
  };
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(create({"cpu_device_count", 4.0f}), invalid, {"int64", "float 4"}));
  EXPECT_TRUE(
      throws_error(create({"cpu_device_count", std::int64_t{0}}), invalid, {"= 0", "1..2048"}));
  EXPECT_TRUE(throws_error(create({"cpu_device_count", std::int64_t{4096}}), invalid, {"4096"}));
  EXPECT_TRUE(throws_error(create({"cpu_devices", std::int64_t{4}}), invalid,
                           {"unknown option \"cpu_devices\"", "cpu_device_count"}));
}

TEST_P(PluginTest, EveryElementTypeSurvivesTheRoundTrip) {
  TestRandom random;
  std::vector<std::int64_t> dimensions = {3, 5};
  for (int number = 1; number <= static_cast<int>(ElementType::kF4E2M1Fn); ++number) {
    auto element = static_cast<ElementType>(number);
    if (!is_array_type(element)) continue;
    SCOPED_TRACE(to_string(element));
    std::vector<std::byte> sent(15 * host_bytes(element)), back(sent.size());
    int most = element == ElementType::kPred ? 1
               : bit_width(element) < 8      ? (1 << bit_width(element)) - 1
                                             : 255;
    for (std::byte& byte : sent) byte = static_cast<std::byte>(random.between(0, most));
    auto made = client().buffer_from_host({sent.data(), element, dimensions},
                                          HostSemantics::kImmutableOnlyDuringCall, device());
    if (!made.ok() && made.error().code() == ErrorCode::kUnimplemented) continue;
    Buffer buffer = std::move(made.value().buffer);
    buffer.read(back).value();
    // Signed types of less than a byte are returned with their sign in the upper bits.
    if (bit_width(element) < 8)
      for (std::byte& byte : back) byte &= static_cast<std::byte>(most);
    EXPECT_EQ(sent, back);
    std::fill(back.begin(), back.end(), std::byte{0});
    buffer.copy_to_host(back).value().await().value();
    if (bit_width(element) < 8)
      for (std::byte& byte : back) byte &= static_cast<std::byte>(most);
    EXPECT_EQ(sent, back);
  }
}

TEST_P(PluginTest, HostBytesAreReleasedAsTheSemanticsSay) {
  struct alignas(64) Block {
    float values[16];
  };
  auto block = std::make_unique<Block>();
  for (int i = 0; i < 16; ++i) block->values[i] = static_cast<float>(i);
  std::vector<std::int64_t> dimensions = {16};
  for (int semantics = 0; semantics <= 3; ++semantics) {
    auto sent = client()
                    .buffer_from_host({block->values, ElementType::kF32, dimensions},
                                      static_cast<HostSemantics>(semantics), device())
                    .value();
    EXPECT_EQ(read_all<float>(sent.buffer)[15], 15.0f);
    bool zero_copy = semantics >= 2;
    if (zero_copy) {
      EXPECT_FALSE(sent.host_released.is_ready().value()) << semantics;
    }
    bool released = false;
    if (!zero_copy) sent.host_released.await().value();
    sent.buffer = Buffer();
    sent.host_released.on_ready([&](const Result<void>& r) { released = r.ok(); }).value();
    sent.host_released.await().value();
    sent.host_released = Event();
    for (int i = 0; i < 1000 && !released; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(released) << semantics;
  }
}

TEST_P(PluginTest, ReadsStridedHostArrays) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};  // 2 x 3
  std::vector<std::int64_t> transposed = {3, 2}, strides = {4, 12};
  auto sent = client().buffer_from_host({values.data(), ElementType::kF32, transposed, strides},
                                        HostSemantics::kImmutableOnlyDuringCall, device());
  EXPECT_EQ(read_all<float>(sent.value().buffer), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST_P(PluginTest, EmptyAndScalarArrays) {
  std::vector<std::int64_t> none = {0, 4}, scalar = {};
  float value = 7;
  auto empty = client().buffer_from_host({nullptr, ElementType::kF32, none},
                                         HostSemantics::kImmutableOnlyDuringCall, device());
  EXPECT_TRUE(read_all<float>(empty.value().buffer).empty());
  auto one = client().buffer_from_host({&value, ElementType::kF32, scalar},
                                       HostSemantics::kImmutableOnlyDuringCall, device());
  EXPECT_EQ(read_all<float>(one.value().buffer), std::vector<float>{7});
}

TEST_P(PluginTest, RefusesHostArraysThatWouldEndTheProcess) {
  float value = 0;
  auto sends = [&](HostArrayView view) {
    return [this, view] {
      client().buffer_from_host(view, HostSemantics::kImmutableOnlyDuringCall, device()).value();
    };
  };
  std::vector<std::int64_t> one = {1}, huge = {1ll << 40, 1ll << 40}, negative = {-1};
  std::vector<std::int64_t> strides = {4, 4};
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(sends({nullptr, ElementType::kF32, one}), invalid, {"is null"}));
  EXPECT_TRUE(throws_error(sends({&value, ElementType(99), one}), invalid, {"number 99"}));
  EXPECT_TRUE(throws_error(sends({&value, ElementType::kToken, one}), invalid, {"number 23"}));
  EXPECT_TRUE(throws_error(sends({&value, ElementType::kF32, huge}), invalid, {"2^60"}));
  EXPECT_TRUE(throws_error(sends({&value, ElementType::kF32, negative}), invalid, {"negative"}));
  EXPECT_TRUE(
      throws_error(sends({&value, ElementType::kF32, one, strides}), invalid, {"2 strides"}));
  Client other = make_client(plugin(), 2);
  EXPECT_TRUE(throws_error(
      [&] {
        client()
            .buffer_from_host({&value, ElementType::kF32, one},
                              HostSemantics::kImmutableOnlyDuringCall, other.device(0))
            .value();
      },
      invalid, {"not an addressable device of this client"}));
}

TEST_P(PluginTest, RefusesCompileOptionsThatThePluginWouldAcceptOrDieOf) {
  std::string module = pass_on(2, 1);
  auto compiles = [&](CompileOptions options) {
    return [this, options, &module] { client().compile(module, options).value(); };
  };
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(compiles(on_devices({1, 1})), invalid, {"device id 1", "twice"}));
  EXPECT_TRUE(throws_error(compiles(on_devices({0, 99})), invalid, {"no device 99"}));
  EXPECT_TRUE(throws_error(compiles(on_devices({0, -1})), invalid, {"-1", "negative"}));
  CompileOptions options = on_first(2);
  options.device_assignment = {0};
  EXPECT_TRUE(throws_error(compiles(options), invalid, {"1 entries", "2 partitions need 2"}));
  options = on_first(2);
  options.propagate_to_parameters = {true, true, true};
  EXPECT_TRUE(throws_error(compiles(options), invalid, {"3 entries", "not given"}));
  options.parameter_count = 1;
  EXPECT_TRUE(throws_error(compiles(options), invalid, {"3 entries", "is 1"}));
  options = {};
  options.num_partitions = 0;
  EXPECT_TRUE(throws_error(compiles(options), invalid, {"num_partitions", "0"}));
  options.num_partitions = 9;
  EXPECT_TRUE(throws_error(compiles(options), invalid, {"9 devices", "has 8"}));
  EXPECT_TRUE(throws_error([&] { client().compile("", on_first(2)).value(); }, invalid, {"empty"}));
  EXPECT_FALSE(client().compile("this is not a module", on_first(2)).ok());
}

TEST_P(PluginTest, RunsOnItsDevicesInTheOrderOfTheAssignment) {
  std::vector<int> ids = {3, 1, 2, 0, 7, 6, 5, 4};
  auto program = client().compile(pass_on(8, 2), on_devices(ids)).value();
  EXPECT_EQ(program.signature().to_string(), "(f32[4], f32[4]) -> (f32[4], f32[4])");
  ASSERT_EQ(program.devices().size(), 8u);
  Arguments arguments(client(), program);
  auto [outputs, launch] = execute(program, arguments.pointers).value();
  launch.await().value();
  EXPECT_TRUE(launch.is_ready().value());
  ASSERT_EQ(outputs.size(), 2u);
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(program.devices()[k]->id(), ids[k]);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(outputs[i][k].device().id(), ids[k]);
      EXPECT_EQ(read_all<float>(outputs[i][k]), Arguments::values(k, i));
    }
  }
}

TEST_P(PluginTest, DonatedArgumentsAreDeadAfterTheLaunch) {
  auto program = client().compile(pass_on(2, 2, true), on_first(2)).value();
  EXPECT_EQ(program.signature().donated, (std::vector<int>{0, 1}));
  Arguments arguments(client(), program);
  auto first = execute(program, arguments.pointers).value();
  for (const BufferList& list : arguments.lists)
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_TRUE(list[k].is_donated());
      EXPECT_TRUE(list[k].plugin_says_deleted().value());
      EXPECT_TRUE(throws_error([&] { list[k].await_ready().value(); }, ErrorCode::kInvalidArgument,
                               {"was donated"}));
    }
  EXPECT_TRUE(throws_error([&] { (void)execute(program, arguments.pointers).value(); },
                           ErrorCode::kInvalidArgument, {"argument 0: ", "donated"}));
  // Chained: the outputs are the next launch's arguments, and use the same memory.
  auto second = execute(program, pointers_to(first.outputs)).value();
  EXPECT_EQ(read_all<float>(second.outputs[1][1]), Arguments::values(1, 1));
}

TEST_P(PluginTest, ABufferGivenTwiceIsRefusedIfOneIsConsumed) {
  auto program = client().compile(pass_on(2, 2, true), on_first(2)).value();
  Arguments arguments(client(), program);
  auto pointers = arguments.pointers;
  pointers[1] = pointers[0];
  EXPECT_TRUE(throws_error([&] { (void)execute(program, pointers).value(); },
                           ErrorCode::kInvalidArgument, {"argument 1", "passed twice"}));
  std::vector<std::int64_t> keep = {0};  // one kept, one consumed: still an error
  EXPECT_TRUE(throws_error([&] { (void)execute(program, pointers, {.keep = keep}).value(); },
                           ErrorCode::kInvalidArgument, {"argument 0", "passed twice"}));
  for (const BufferList& list : arguments.lists) EXPECT_TRUE(list.is_live());
  keep = {0, 1};
  execute(program, pointers, {.keep = keep}).value().launch.await().value();
  execute(program, arguments.pointers).value().launch.await().value();
}

TEST_P(PluginTest, KeptArgumentsSurvive) {
  auto program = client().compile(pass_on(2, 2, true), on_first(2)).value();
  Arguments arguments(client(), program);
  std::vector<std::int64_t> keep = {1};
  auto result = execute(program, arguments.pointers, {.keep = keep}).value();
  EXPECT_FALSE(arguments.lists[0].is_live());
  EXPECT_TRUE(arguments.lists[1].is_live());
  EXPECT_EQ(read_all<float>(arguments.lists[1][1]), Arguments::values(1, 1));
  keep = {1, 0};
  EXPECT_TRUE(
      throws_error([&] { (void)execute(program, arguments.pointers, {.keep = keep}).value(); },
                   ErrorCode::kInvalidArgument, {"keep", "ascending"}));
}

TEST_P(PluginTest, ManyLaunchesWithoutWaitingDoNotHang) {
  auto program = client().compile(pass_on(8, 1), on_first(8)).value();
  Arguments arguments(client(), program);
  std::vector<BufferList> outputs(1);
  for (int i = 0; i < 120; ++i) {
    if (i % 3 == 2 && program.can_run_device_by_device())
      (void)program.execute_each_device(arguments.pointers, outputs).value();
    else
      (void)program.execute(arguments.pointers, outputs).value();
    EXPECT_LE(client().launches_in_flight(), 31u);
  }
  client().await_launches();
  EXPECT_EQ(client().launches_in_flight(), 0u);
  EXPECT_EQ(read_all<float>(outputs[0][7]), Arguments::values(7, 0));
}

TEST_P(PluginTest, SeveralThreadsMayLaunchAtOnce) {
  auto program = client().compile(pass_on(4, 1), on_first(4)).value();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Arguments arguments(client(), program);
      std::vector<BufferList> outputs(1);
      for (int i = 0; i < 40; ++i) {
        bool each = (i + t) % 2 == 0 && program.can_run_device_by_device();
        auto launched = each ? program.execute_each_device(arguments.pointers, outputs)
                             : program.execute(arguments.pointers, outputs);
        if (!launched.ok()) ++wrong;
      }
      if (read_all<float>(outputs[0][3]) != Arguments::values(3, 0)) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(PluginTest, DevicesAreLaunchedInTheOrderOfTheLoop) {
  auto program = client().compile(pass_on(4, 1), on_first(4)).value();
  Arguments arguments(client(), program);
  std::vector<BufferList> outputs(1);
  std::size_t calls = 0;
  const auto backwards = [&](std::size_t count, const auto& launch) {
    for (std::size_t k = count; k-- > 0; ++calls) launch(k);
  };
  const DeviceLoop loop(backwards);
  auto launched = program.execute_each_device(arguments.pointers, outputs, {}, &loop);
  if (!program.can_run_device_by_device()) {
    EXPECT_FALSE(launched.ok());
    EXPECT_EQ(calls, 0u) << "the plugin was called";
    return;
  }
  launched.value().await().value();
  EXPECT_EQ(calls, 4u);
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_EQ(read_all<float>(outputs[0][k]), Arguments::values(k, 0));
}

TEST_P(PluginTest, SerializedProgramsRunOnOtherDevices) {
  auto program = client().compile(pass_on(2, 1), on_first(2)).value();
  std::string bytes = program.executable().serialize().value();
  CompileOptions elsewhere = on_devices({5, 3});
  auto again = client().deserialize_and_load(bytes, &elsewhere).value();
  EXPECT_EQ(again.devices()[0]->id(), 5);
  EXPECT_EQ(again.signature(), program.signature());
  auto quick = client().deserialize_and_load(bytes, &elsewhere, &program.signature()).value();
  for (const LoadedExecutable* one : {&again, &quick}) {
    Arguments arguments(client(), *one);
    auto result = execute(*one, arguments.pointers).value();
    EXPECT_EQ(result.outputs[0][1].device().id(), 3);
    EXPECT_EQ(read_all<float>(result.outputs[0][1]), Arguments::values(1, 0));
  }
  EXPECT_FALSE(client().deserialize_and_load("garbage").ok());
  EXPECT_FALSE(client().deserialize_and_load(bytes.substr(0, bytes.size() / 2)).ok());
  ExecutableSignature wrong = program.signature();
  wrong.results.push_back(wrong.results[0]);
  EXPECT_TRUE(throws_error([&] { client().deserialize_and_load(bytes, nullptr, &wrong).value(); },
                           ErrorCode::kInvalidArgument, {"1 outputs", "2"}));
}

TEST_P(PluginTest, ViewsOutliveDeletionAndDestruction) {
  std::optional<HostView> view;
  {
    Buffer buffer = send(client(), device(), {1, 2, 3, 4});
    view = buffer.host_view().value();
    buffer.delete_now().value();
    EXPECT_FALSE(buffer.is_live());
    EXPECT_FALSE(buffer.host_view().ok());
  }
  ASSERT_EQ(view->bytes().size(), 16u);
  EXPECT_EQ(reinterpret_cast<const float*>(view->bytes().data())[3], 4.0f);
}

// Without a lock, the plugin miscounts its references and aborts the process with the buffer.
TEST_P(PluginTest, SeveralThreadsViewOneBuffer) {
  Buffer buffer = send(client(), device(), {1, 2, 3, 4});
  std::atomic<int> right = 0;
  constexpr int kThreads = 4, kViews = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kViews; ++i) right += buffer.host_view().value().bytes().size() == 16;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kViews);
}

TEST_P(PluginTest, DeadBuffersAreRefusedEverywhere) {
  Buffer buffer = send(client(), device(), {1, 2, 3, 4});
  buffer.delete_now().value();
  std::vector<std::byte> bytes(16);
  for (const Error& error : {buffer.read(bytes).error(), buffer.copy_to_host(bytes).error(),
                             buffer.ready_event().error(), buffer.unsafe_pointer().error(),
                             buffer.copy_to_device(device(1)).error(), buffer.delete_now().error()})
    EXPECT_NE(error.message().find("f32[4] on device 0 was deleted"), std::string::npos)
        << error.message();
  EXPECT_FALSE(Buffer().read(bytes).ok());
}

TEST_P(PluginTest, CopiesBetweenDevices) {
  Buffer buffer = send(client(), device(0), {1, 2, 3, 4});
  Buffer copy = buffer.copy_to_device(device(5)).value();
  EXPECT_EQ(&copy.device(), &device(5));
  EXPECT_EQ(read_all<float>(copy), (std::vector<float>{1, 2, 3, 4}));
  std::vector<std::byte> small(15);
  EXPECT_TRUE(throws_error([&] { buffer.read(small).value(); }, ErrorCode::kInvalidArgument,
                           {"15 bytes", "needs 16"}));
}

TEST_P(PluginTest, MemoryOfOthersIsViewedAndGivenBack) {
  alignas(64) float values[4] = {1, 2, 3, 4};
  ArrayType type{ElementType::kF32, {4}};
  bool released = false;
  {
    Buffer buffer =
        client().view_device_memory(values, type, device(), [&] { released = true; }).value();
    EXPECT_EQ(read_all<float>(buffer)[2], 3.0f);
  }
  finish_callbacks();
  EXPECT_TRUE(released);
  Buffer silent = client().view_device_memory(values, type, device(), {}).value();
  EXPECT_FALSE(client().view_device_memory(nullptr, type, device(), {}).ok());
  Buffer blank = client().uninitialized_buffer(type, device()).value();
  EXPECT_EQ(read_all<float>(blank).size(), 4u);
}

TEST_P(PluginTest, TransfersInPieces) {
  std::vector<ArrayType> types = {{ElementType::kF32, {4}}, {ElementType::kS32, {2}}};
  auto begun = client().begin_transfer(types, device(1));
  if (!begun.ok() && begun.error().code() == ErrorCode::kUnimplemented)
    GTEST_SKIP() << begun.error().message();
  HostToDeviceTransfer transfer = std::move(begun).value();
  ASSERT_EQ(transfer.buffer_count(), 2u);
  std::vector<float> values = {1, 2, 3, 4};
  auto bytes = std::as_bytes(std::span(values));
  Buffer buffer = transfer.take_buffer(0).value();
  EXPECT_FALSE(transfer.take_buffer(0).ok());
  EXPECT_FALSE(transfer.take_buffer(2).ok());
  EXPECT_EQ(transfer.send(0, bytes, 4, false).error().code(), ErrorCode::kOutOfRange);
  transfer.send(0, bytes.first(8), 0, false).value().await().value();
  transfer.send(0, bytes.last(8), 8, true).value().await().value();
  EXPECT_EQ(read_all<float>(buffer), values);
  EXPECT_EQ(&buffer.device(), &device(1));
  Buffer failed = transfer.take_buffer(1).value();
  transfer.set_error(1, Error(ErrorCode::kDataLoss, "the file ended")).value();
  EXPECT_TRUE(throws_error([&] { failed.await_ready().value(); }, ErrorCode::kDataLoss,
                           {"the file ended"}));
}

TEST_P(PluginTest, BuffersAndProgramsKeepTheirClientAlive) {
  Plugin loaded = plugin();
  std::optional<Client> mine = make_client(loaded, 2);
  auto program = mine->compile(pass_on(2, 1), on_first(2)).value();
  Arguments arguments(*mine, program);
  auto result = execute(program, arguments.pointers).value();
  mine.reset();
  result.launch.await().value();
  EXPECT_EQ(read_all<float>(result.outputs[0][1]), Arguments::values(1, 0));
  {
    LoadedExecutable moved = std::move(program);
    LoadedExecutable target = std::move(moved);
    EXPECT_EQ(target.devices().size(), 2u);
  }
  EXPECT_EQ(read_all<float>(result.outputs[0][0]), Arguments::values(0, 0));
}

TEST_P(PluginTest, TheCompiledModuleTellsShardShapes) {
  auto program = client().compile(pass_on(4, 2, true), on_first(4)).value();
  auto module = HloModule::from_bytes(program.executable().optimized_program().value()).value();
  ASSERT_EQ(module.parameters.size(), 2u);
  EXPECT_EQ(module.parameters[0].to_string(), "f32[4]");
  EXPECT_EQ(module.result.to_string(), "(f32[4], f32[4])");
  EXPECT_EQ(module.aliases.size(), 2u);
  EXPECT_FALSE(module.entry().instructions.empty());
  EXPECT_NE(module.entry().find(module.entry().root), nullptr);
  EXPECT_EQ(program.executable().output_types().value(), program.signature().results);
  EXPECT_EQ(program.executable().num_partitions().value(), 4);
}

}  // namespace
}  // namespace meshard::pjrt
