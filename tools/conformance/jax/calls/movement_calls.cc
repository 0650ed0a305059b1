// Functions that only move elements.
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

// Reads a number; `[start, stop, step]` with null for a missing bound; `new`; `...`.
std::vector<IndexItem> items_of(const Json& list) {
  auto bound = [](const Json& value) {
    return value.is_null() ? RangeBound(none) : RangeBound(value.get<std::int64_t>());
  };
  std::vector<IndexItem> items;
  for (const Json& item : list) {
    if (item == "new")
      items.emplace_back(newaxis);
    else if (item == "...")
      items.emplace_back(ellipsis);
    else if (item.is_number_integer())
      items.emplace_back(item.get<std::int64_t>());
    else if (item.is_array() && item.size() == 3)
      items.emplace_back(range(bound(item[0]), bound(item[1]), item[2].get<std::int64_t>()));
    else
      throw Unreadable("invalid index item");
  }
  return items;
}

Tensor permuted(Operands x, const Attributes& at) {
  return at.has("permutation") ? permute_dims(x[0], at.list("permutation")) : permute_dims(x[0]);
}

Tensor squeezed(Operands x, const Attributes& at) {
  return at.has("dimensions") ? squeeze(x[0], at.list("dimensions")) : squeeze(x[0]);
}

Tensor rolled_by(Operands x, const Attributes& at) {
  return at.has("shifts") ? roll(x[0], at.list("shifts"), at.list("dimensions"))
                          : roll(x[0], at.integer("shift"));
}

Tensors all_of(Operands x) { return {x.begin(), x.end()}; }

const CallTable& single_results() {
  static const CallTable table{
      {"reshape", one_result([](Operands x, const Attributes& at) {
         return reshape(x[0], at.shape("shape"));
       })},
      {"permute_dims", one_result(permuted)},
      {"broadcast_to", one_result([](Operands x, const Attributes& at) {
         return broadcast_to(x[0], at.shape("shape"));
       })},
      {"broadcast_in_dim", one_result([](Operands x, const Attributes& at) {
         return broadcast_in_dim(x[0], at.shape("shape"), at.list("dimensions"));
       })},
      {"concat", one_result([](Operands x, const Attributes& at) {
         return concat(all_of(x), at.integer("dimension"));
       })},
      {"stack", one_result([](Operands x, const Attributes& at) {
         return stack(all_of(x), at.integer("dimension"));
       })},
      {"slice", one_result([](Operands x, const Attributes& at) {
         return slice(x[0], at.list("start"), at.list("stop"), at.list("stride"));
       })},
      {"index", one_result([](Operands x, const Attributes& at) {
         return index(x[0], items_of(at.at("items")));
       })},
      {"flip",
       one_result([](Operands x, const Attributes& at) { return flip(x[0], at.dimensions()); })},
      {"pad", one_result([](Operands x, const Attributes& at) {
         return pad(x[0], at.integer("value"), at.list("low"), at.list("high"),
                    at.list("interior"));
       })},
      {"squeeze", one_result(squeezed)},
      {"expand_dims", one_result([](Operands x, const Attributes& at) {
         return expand_dims(x[0], at.integer("dimension"));
       })},
      {"swapaxes", one_result([](Operands x, const Attributes& at) {
         return swapaxes(x[0], at.integer("a"), at.integer("b"));
       })},
      {"moveaxis", one_result([](Operands x, const Attributes& at) {
         return moveaxis(x[0], at.list("source"), at.list("destination"));
       })},
      {"repeat", one_result([](Operands x, const Attributes& at) {
         return repeat(x[0], at.integer("repeats"), at.maybe_integer("dimension"));
       })},
      {"tile", one_result([](Operands x, const Attributes& at) {
         return tile(x[0], at.list("repetitions"));
       })},
      {"roll", one_result(rolled_by)},
      {"tril",
       one_result([](Operands x, const Attributes& at) { return tril(x[0], at.integer("k")); })},
      {"triu",
       one_result([](Operands x, const Attributes& at) { return triu(x[0], at.integer("k")); })},
      {"diagonal", one_result([](Operands x, const Attributes& at) {
         return diagonal(x[0], at.integer("offset"));
       })},
      {"one_hot", one_result([](Operands x, const Attributes& at) {
         return one_hot(x[0], at.integer("classes"), at.dtype("dtype"));
       })},
  };
  return table;
}

}  // namespace

const CallTable& movement_calls() {
  static const CallTable table = [] {
    CallTable all = single_results();
    all.merge(CallTable{
        {"split",
         [](Operands x, const Attributes& at) {
           return split(x[0], at.integer("count"), at.integer("dimension"));
         }},
        {"split_sizes",
         [](Operands x, const Attributes& at) {
           return split_sizes(x[0], at.list("sizes"), at.integer("dimension"));
         }},
        {"unstack",
         [](Operands x, const Attributes& at) { return unstack(x[0], at.integer("dimension")); }},
    });
    return all;
  }();
  return table;
}

}  // namespace meshard::conformance
