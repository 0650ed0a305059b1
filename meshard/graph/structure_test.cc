#include "meshard/graph/structure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/graph/leaf.h"

namespace meshard {
namespace {

struct Layer {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};
struct Model {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> extra;
  std::optional<Tensor> bias;
  std::array<Tensor, 2> pair;
  std::tuple<Tensor, int> last;
  MESHARD_FIELDS(layers, extra, bias, pair, last)
};

Tensor number(float value) { return from_host(HostArray::scalar(value)); }

Model example_model() {
  return {.layers = {{number(0), number(1)}, {number(2), number(3)}},
          .extra = {{"a", number(4)}, {"b", number(5)}},
          .bias = number(6),
          .pair = {number(7), number(8)},
          .last = {number(9), 42}};
}

TEST(Structure, VisitsDepthFirstWithPaths) {
  Model model = example_model();
  std::string paths;
  float expected = 0;
  structure::for_each(model, [&](auto& leaf, const std::string& path) {
    append(paths, cat(path, " "));
    if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
      EXPECT_EQ(leaf.template item<float>(), expected++);
    else
      EXPECT_EQ(leaf, 42);
  });
  EXPECT_EQ(paths,
            ".layers[0].w .layers[0].b .layers[1].w .layers[1].b .extra[\"a\"] .extra[\"b\"] "
            ".bias .pair[0] .pair[1] .last[0] .last[1] ");
}

TEST(Structure, TensorsAndWithTensorsAreInverse) {
  Model model = example_model();
  std::vector<Tensor> leaves = structure::tensors(model);
  ASSERT_EQ(leaves.size(), 10u);
  std::reverse(leaves.begin(), leaves.end());
  Model reversed = structure::with_tensors(model, leaves);
  EXPECT_EQ(reversed.layers[0].w.item<float>(), 9);
  EXPECT_EQ(std::get<0>(reversed.last).item<float>(), 0);
  EXPECT_EQ(model.layers[0].w.item<float>(), 0) << "the argument is a copy";
}

TEST(Structure, FormTellsLengthsKeysAndPresence) {
  auto form = [](const Model& model) {
    std::vector<std::uint64_t> out;
    structure::append_form(model, out);
    return out;
  };
  Model base = example_model(), other = example_model();
  EXPECT_EQ(form(base), form(other));
  other.bias.reset();
  EXPECT_NE(form(base), form(other));
  other = example_model();
  other.layers.pop_back();
  EXPECT_NE(form(base), form(other));
  other = example_model();
  other.extra = {{"a", number(4)}, {"c", number(5)}};
  EXPECT_NE(form(base), form(other));
}

template <class Key>
std::vector<std::uint64_t> form_of_keys(std::vector<Key> keys) {
  std::map<Key, Tensor> named;
  for (Key& key : keys) named[std::move(key)] = number(0);
  std::vector<std::uint64_t> form;
  structure::append_form(named, form);
  return form;
}

TEST(Structure, FormHoldsTheKeysThemselves) {
  using Texts = std::vector<std::string>;
  std::vector<Texts> all = {{"a"},
                            {"b"},
                            {"a", "b"},
                            {"ab"},
                            {""},
                            {"", "a"},
                            {"12345678"},
                            {"12345678", "a"},
                            {"1234567", "8a"},
                            {"12345678a"},
                            {std::string("a\0", 2)}};
  for (const Texts& one : all)
    for (const Texts& other : all)
      EXPECT_EQ(form_of_keys(one) == form_of_keys(other), one == other);
  EXPECT_NE(form_of_keys<double>({0.25}), form_of_keys<double>({0.5}));
  EXPECT_EQ(form_of_keys<double>({0.0}), form_of_keys<double>({-0.0})) << "equal keys";
  using Pairs = std::vector<std::pair<std::string, int>>;
  EXPECT_NE(form_of_keys(Pairs{{"a", 1}}), form_of_keys(Pairs{{"a", 2}}));
  EXPECT_EQ(form_of_keys(Pairs{{"a", 1}}), form_of_keys(Pairs{{"a", 1}}));
  EXPECT_NE(form_of_keys<std::vector<int>>({{1, 2}}), form_of_keys<std::vector<int>>({{1}, {2}}));
}

// A structure whose parts are only known when the program runs.
class Flat {
 public:
  explicit Flat(std::vector<std::string> names) : names_(std::move(names)) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      leaves_.push_back(number(static_cast<float>(i)));
  }
  std::vector<Tensor>& leaves() { return leaves_; }
  const std::vector<Tensor>& leaves() const { return leaves_; }
  std::string leaf_path(std::size_t leaf) const { return cat(".", names_[leaf]); }
  void append_form(std::vector<std::uint64_t>& form) const {
    form.push_back(names_.size());
    for (const std::string& name : names_) form.push_back(std::hash<std::string>()(name));
  }

 private:
  std::vector<std::string> names_;
  std::vector<Tensor> leaves_;
};

TEST(Structure, TypesThatAreFlatAlready) {
  std::pair<Flat, Tensor> value(Flat({"w", "b"}), number(7));
  static_assert(structure::is_structure<std::pair<Flat, Tensor>>());
  std::string paths;
  structure::for_each(value, [&](auto&, const std::string& path) { append(paths, path + " "); });
  EXPECT_EQ(paths, "[0].w [0].b [1] ");
  std::vector<Tensor> all = structure::tensors(value);
  ASSERT_EQ(all.size(), 3u);
  std::pair<Flat, Tensor> other =
      structure::with_tensors(value, std::vector<Tensor>{number(3), number(4), number(5)});
  EXPECT_EQ(other.first.leaves()[1].item<float>(), 4);
  EXPECT_EQ(other.second.item<float>(), 5);
  EXPECT_EQ(value.first.leaves()[1].item<float>(), 1);

  std::vector<std::uint64_t> one, same, another;
  structure::append_form(value, one);
  structure::append_form(other, same);
  structure::append_form(std::pair<Flat, Tensor>(Flat({"w", "c"}), number(0)), another);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, another);
}

}  // namespace
}  // namespace meshard
