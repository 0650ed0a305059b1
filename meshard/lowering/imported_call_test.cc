#include "meshard/lowering/imported_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/stablehlo/module.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

const TensorType kFourFloats{DType::f32, {4}};

std::shared_ptr<const ImportedBody> called(std::string op, ImportedBody body = {}) {
  body.name = "a-" + op;
  body.text = cat("module @m {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(",
                  body.platform_number ? "%p: tensor<i32>, " : "",
                  "%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> "
                  "tensor<4xf32> {\n    %0 = stablehlo.",
                  op, " %a, %a : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n");
  body.key = fingerprint(body.text);
  body.taken = {1};
  body.results = {kFourFloats};
  return std::make_shared<const ImportedBody>(std::move(body));
}

// The text of a program of one argument.
template <class F>
std::string text_of(const std::optional<Sharding>& sharding, F f) {
  internal::TraceScope scope;
  Tensor parameter = make_parameter(kFourFloats, sharding, {});
  const Value leaves[] = {parameter.value()}, results[] = {f(parameter).value()};
  return lower({.graph = Graph::build(leaves, results, scope.trace()), .donated = {}}).text;
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// `taken` leaves out the first operand.
Tensor call(const std::shared_ptr<const ImportedBody>& body, const Tensor& x) {
  return record_imported_call(body, std::vector<Tensor>{x, x}, {})[0];
}

TEST(ImportedCall, ItsModuleIsAPartOfTheProgramOnce) {
  auto add = called("add"), multiply = called("multiply");
  std::string text = text_of(
      std::nullopt, [&](const Tensor& x) { return call(multiply, call(add, call(add, x))); });
  EXPECT_EQ(count_of(text, "func.func private @a_add_1.main("), 1u);
  EXPECT_EQ(count_of(text, "func.call @a_add_1.main("), 2u);
  EXPECT_EQ(count_of(text, "func.func private @a_multiply_2.main("), 1u);
  EXPECT_EQ(count_of(text, "func.call @a_multiply_2.main("), 1u);
  EXPECT_TRUE(stablehlo::Module::parse(text).ok());
}

TEST(ImportedCall, TheNumberOfThePlatformIsAConstant) {
  auto body = called("add", {.name = "", .text = "", .platform_number = 2});
  std::string text = text_of(std::nullopt, [&](const Tensor& x) { return call(body, x); });
  EXPECT_THAT(text, HasSubstr("dense<2> : tensor<i32>"));
  EXPECT_THAT(text, HasSubstr(" : (tensor<i32>, tensor<4xf32>) -> "));
}

TEST(ImportedCall, MeshesAreThoseOfTheProgram) {
  Mesh mesh({{"x", 4}}), reversed({{"x", 4}}, std::vector<std::int64_t>{3, 2, 1, 0});
  auto on = [&](const Mesh& own, bool ordered) {
    return called("add", {.name = "",
                          .text = "",
                          .devices = 4,
                          .meshes = {{"mesh", own}},
                          .has_device_order = ordered});
  };
  auto text = [&](const std::shared_ptr<const ImportedBody>& body) {
    return text_of(Sharding(mesh, P("x")), [&](const Tensor& x) { return call(body, x); });
  };
  EXPECT_EQ(count_of(text(on(mesh, true)), "sdy.mesh @"), 1u);
  EXPECT_NO_THROW(text(on(reversed, false)));
  EXPECT_TRUE(throws_error([&] { text(on(reversed, true)); }, ErrorCode::kInvalidArgument,
                           {"\"a-add\" exchanges values", "devices=[3,2,1,0]"}));
}

TEST(ImportedCall, AProgramForOtherDevicesIsAnError) {
  auto body = called("add", {.name = "", .text = "", .devices = 8});
  EXPECT_TRUE(throws_error(
      [&] { text_of(std::nullopt, [&](const Tensor& x) { return call(body, x); }); },
      ErrorCode::kInvalidArgument, {"\"a-add\" is for 8 devices", "runs on 1 device"}));
}

TEST(ImportedCall, VmapIsAnErrorWithItsName) {
  auto body = called("add");
  internal::TraceScope scope;
  Tensor batch = make_parameter({DType::f32, {3, 4}}, std::nullopt, {});
  EXPECT_TRUE(throws_error([&] { vmap([&](Tensor x) { return call(body, x); })(batch); },
                           ErrorCode::kUnimplemented, {"vmap of \"a-add\""}));
}

}  // namespace
}  // namespace meshard
