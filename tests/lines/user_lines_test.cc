// Errors name the line that called the library, in whatever function of it they arise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/meshard.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// What an error says, and whether it has the line.
template <class F>
void expect_line(const F& call, std::uint32_t line, std::string_view text) {
  try {
    call();
    ADD_FAILURE() << text << " has no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string_view(error.where().file).ends_with("user_lines_test.cc") &&
                error.where().line == line)
        << text << " on line " << line << ": " << error.what();
  }
}
// The call fails, and names this line.
#define EXPECT_LINE(...) expect_line([&] { (void)(__VA_ARGS__); }, __LINE__, #__VA_ARGS__)

template <class F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct Two {
  Tensor a, b;
  MESHARD_FIELDS(a, b)
};

class UserLines : public testing::Test {
 protected:
  Mesh mesh = Mesh({{"x", 2}});
  Tensor x = ones({2, 4}), y = ones({3, 5}), z = ones({3}), i = arange(3);
  Tensor complex = astype(ones({2, 4}), DType::c64);
  Tensor key = random::key(1);
  nn::Maker make{nn::AxisRules(), random::key(2)};
};

TEST_F(UserLines, Layers) {
  nn::Linear linear = nn::make_linear(make, 4, 8);
  EXPECT_LINE(nn::linear(linear, y));
  EXPECT_LINE(nn::unembed({ones({6, 7})}, y));
  EXPECT_LINE(nn::embedding({ones({6, 7})}, y));
  EXPECT_LINE(nn::layer_norm(nn::make_layer_norm(make, 7), x));
  EXPECT_LINE(nn::rms_norm(nn::make_rms_norm(make, 7), x));
  EXPECT_LINE(nn::mlp(nn::make_mlp(make, 7, 8), x));
  EXPECT_LINE(nn::gated_mlp(nn::make_gated_mlp(make, 7, 8), x));
  EXPECT_LINE(nn::make_attention(make, 8, {.heads = 3}));
  nn::Attention attention = nn::make_attention(make, 8, {.heads = 2});
  EXPECT_LINE(nn::attention(attention, ones({2, 3, 9})));
  EXPECT_LINE(nn::attention(attention, z));
  EXPECT_LINE(nn::attention(attention, ones({2, 3, 8}), nn::make_cache({}, attention, 2, 4), x));
  EXPECT_LINE(nn::make_cache({}, attention, -2, 4));
  EXPECT_LINE(nn::mixture(nn::make_mixture(make, 4, 8, 2), x));
  EXPECT_LINE(nn::mixture(nn::make_mixture(make, 4, 8, 2), ones({2, 3, 4}), {.used = 3}));
  EXPECT_LINE(nn::rotated({}, x, i));
  EXPECT_LINE(nn::dropout(x, 2, key));
  EXPECT_LINE(nn::AxisRules(mesh, {{"hidden", "y"}}));
  EXPECT_LINE(nn::AxisRules(mesh, {}).mark(z, P("x", "x")));
  EXPECT_LINE(make({4}, P("a", "b"), nn::init::orthogonal()));
  EXPECT_LINE(nn::make_layers(make, 0, [](nn::Maker& m) { return nn::make_linear(m, 4, 4); }));
  EXPECT_THAT(message_of([&] { nn::mlp(nn::make_mlp(make, 7, 8), x); }),
              testing::ContainsRegex("^user_lines_test.cc:[0-9]+, in nn::mlp: invalid argument"));
}

TEST_F(UserLines, LayersInJit) {
  nn::Linear linear = nn::make_linear(make, 4, 8);
  auto f = jit([&](Tensor given) {
    EXPECT_LINE(nn::linear(linear, given));
    return given;
  });
  (void)f(y);
  auto g = [&](const Tensor& given) {
    EXPECT_LINE(nn::linear(linear, given));
    return sum(given);
  };
  (void)grad(g)(y);
}

TEST_F(UserLines, CompiledCollectivesAreThoseOfTheCall) {
  nn::Linear linear = nn::make_linear(make, 4, 8);
  linear.weight = mark_sharding(linear.weight, mesh, P("x", none));
  Tensor result = nn::linear(linear, x);
  EXPECT_THAT(result.where().to_string(), testing::EndsWith(", in nn::linear"));
  EXPECT_THAT(result.where().to_string(), StartsWith("user_lines_test.cc:"));
}

TEST_F(UserLines, Optimizers) {
  Two params{x, y}, others{x, z};
  auto adam = optim::init(optim::Adam{}, params);
  EXPECT_LINE(optim::update(optim::Adam{}, params, others, adam));
  auto sgd = optim::init(optim::Sgd{}, params);
  EXPECT_LINE(optim::update(optim::Sgd{.momentum = 0.5}, params, params, sgd));
  EXPECT_LINE(optim::init(optim::Adam{}, Two{i, i}));
  EXPECT_LINE(optim::clip_by_global_norm(params, 0));
  EXPECT_LINE(optim::cosine(1, 0));
  EXPECT_LINE(optim::linear(1, 0, 0));
  EXPECT_LINE(optim::warm_up(1, 0, 0.5));
  EXPECT_LINE(optim::joined(1, 0, 0.5));
  EXPECT_LINE(optim::piecewise({}));
  EXPECT_LINE(optim::cosine(1, 5)(x));
  EXPECT_LINE(optim::accumulated([](const Two& p, const Tensor& b) { return sum(p.a) + sum(b); },
                                 2)(params, z));
  EXPECT_LINE(optim::zero_layout(params, "expert"));
  EXPECT_LINE(optim::Fsdp<Two>(params, {.axis = "expert"}));
  EXPECT_LINE(optim::scaled(optim::init(optim::LossScaling{}), complex));
  EXPECT_LINE(optim::chosen(x, params, others));
}

TEST_F(UserLines, Composites) {
  EXPECT_LINE(ones({-1}));
  EXPECT_LINE(zeros({2, -3}));
  EXPECT_LINE(full({-1}, 2));
  EXPECT_LINE(meshard::random::uniform(key, {-2}));
  EXPECT_LINE(arange(complex));
  EXPECT_LINE(linspace(0, 1, -1));
  EXPECT_LINE(eye(-1));
  EXPECT_LINE(tril(z));
  EXPECT_LINE(softmax(x, 5));
  EXPECT_LINE(log_softmax(x, 5));
  EXPECT_LINE(logsumexp(x, {5}));
  EXPECT_LINE(glu(z));
  EXPECT_LINE(swiglu(x, y));
  EXPECT_LINE(argmax(x, 5));
  EXPECT_LINE(argsort(x, 5));
  EXPECT_LINE(top_k(x, 9));
  EXPECT_LINE(dot_product_attention(x, x, x));
  EXPECT_LINE(rotary_embedding(x, i));
  EXPECT_LINE(conv1d(x, x));
  EXPECT_LINE(conv2d(x, x));
  EXPECT_LINE(max_pool(x, {2, 2, 2}));
  EXPECT_LINE(avg_pool(x, {2, 2, 2}));
  EXPECT_LINE(cross_entropy(x, i));
  EXPECT_LINE(binary_cross_entropy(x, y));
  EXPECT_LINE(diff(x, 5));
  EXPECT_LINE(dropout(x, 2, key));
  EXPECT_LINE(dropout(x, 0.5, x));
  EXPECT_LINE(einsum("ij,jk->ik", {x, y}));
  EXPECT_LINE(einsum("ij,jk-ik", {x, y}));
  EXPECT_LINE(fftfreq(-1));
  EXPECT_LINE(fftshift(x, {5}));
  EXPECT_LINE(index(x, {7}));
  EXPECT_LINE(x[7]);
  EXPECT_LINE(layer_norm(x, z, z));
  EXPECT_LINE(rms_norm(x, z));
  EXPECT_LINE(group_norm(x, z, z, 3));
  EXPECT_LINE(batch_norm(x, z, z));
  EXPECT_LINE(solve(x, y));
  EXPECT_LINE(inv(x));
  EXPECT_LINE(det(x));
  EXPECT_LINE(matrix_power(x, 2));
  EXPECT_LINE(diagonal(z));
  EXPECT_LINE(cross(x, y));
  EXPECT_LINE(vector_norm(x, {5}));
  EXPECT_LINE(linear(x, y));
  EXPECT_LINE(logaddexp(x, y));
  EXPECT_LINE(hypot(x, y));
  EXPECT_LINE(matmul(x, y));
  EXPECT_LINE(tensordot(x, y, 1));
  EXPECT_LINE(one_hot(x, 3));
  EXPECT_LINE(one_hot(i, -3));
  EXPECT_LINE(x + y);
  EXPECT_LINE(x += y);
  EXPECT_LINE(squeeze(x, {0}));
  EXPECT_LINE(expand_dims(x, 9));
  EXPECT_LINE(swapaxes(x, 0, 9));
  EXPECT_LINE(moveaxis(x, 0, 9));
  EXPECT_LINE(repeat(x, -1));
  EXPECT_LINE(tile(x, {-1}));
  EXPECT_LINE(roll(x, 1, 9));
  EXPECT_LINE(take(x, y, 0));
  EXPECT_LINE(take(x, i, 9));
  EXPECT_LINE(stack({x, y}));
  EXPECT_LINE(concat({x, y}, 0));
  EXPECT_LINE(cumulative_sum(x, 9));
  EXPECT_LINE(searchsorted(x, y));
  EXPECT_LINE(segment_sum(x, i, 2));
  EXPECT_LINE(mark_sharding(x, mesh, P("y")));
  EXPECT_LINE(mark_sharding(Two{x, y}, mesh, P("x", "x")));
  EXPECT_LINE(meshard::random::uniform(x, {2}));
  EXPECT_LINE(meshard::random::normal(key, {2}, DType::i32));
  EXPECT_LINE(meshard::random::choice(key, x, {30}, {.replace = false}));
  EXPECT_LINE(meshard::random::permutation(key, x, 9));
  EXPECT_LINE(meshard::random::split(x));
}

TEST_F(UserLines, Transformations) {
  auto square = [](const Tensor& a) { return a * a; };
  // The call operators have no place for a line: that of the value counts.
  for (const std::string& text : {message_of([&] { (void)grad(square)(x); }),
                                  message_of([&] { (void)value_and_grad(square)(i); }),
                                  message_of([&] { (void)jvp(square, x, y); })})
    EXPECT_THAT(text, StartsWith("user_lines_test.cc:"));
  EXPECT_LINE(vmap([](const Tensor& a, const Tensor& b) { return a + b; })(x, y));
  EXPECT_LINE(
      scan([](const Tensor& c, const Tensor& s) { return std::pair(c + s, s); }, ones({}), x));
  EXPECT_LINE(while_loop([](const Tensor&) { return ones({2}); }, square, x));
  EXPECT_LINE(cond(x, square, square, x));
  EXPECT_LINE(stack_structures(std::vector<Two>{{x, y}, {y, y}}));
}

TEST_F(UserLines, TextForms) {
  auto f = jit([](Tensor a) { return a; });
  EXPECT_LINE(expect_collectives(f, "1 all-reduce over model, at most 1 KB"));
  EXPECT_LINE(Mesh::parse("mesh<x").value());
  EXPECT_LINE(PartitionSpec::parse("P(").value());
  EXPECT_LINE(Sharding::parse("nothing").value());
  EXPECT_LINE(Shape::parse("[3").value());
  EXPECT_LINE(io::load("/no/such/file").value());
  EXPECT_LINE(io::restore("/no/such/file", Two{x, y}).value());
  EXPECT_LINE(io::save("/no/such/folder/file", Two{x, y}).value());
  std::string path = testing::TempDir() + "user_lines.safetensors";
  io::save(path, Two{x, y}).value();
  EXPECT_LINE(io::restore(path, Two{x, z}).value());
  EXPECT_LINE(io::restore(path, std::vector<Tensor>{x}).value());
}

TEST_F(UserLines, ADonatedValueThatIsRead) {
  auto f = jit([](Tensor a) { return a + 1; }, {.donate = {0}});
  Tensor given = zeros({8});
  sync(given);
  (void)f(given);
  EXPECT_LINE(given.to_host());
  EXPECT_LINE(given + 1, sync(given + 1));
  std::string printed = message_of([&] { (void)given.to_string(); });
  EXPECT_THAT(printed, StartsWith("user_lines_test.cc:"));
  EXPECT_THAT(printed, HasSubstr("donated"));
}

}  // namespace
}  // namespace meshard
