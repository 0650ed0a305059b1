// Tested in meshard/ops/rolling/roll_layers_test.cc.
#include "meshard/ops/rolling/equal_layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/rolling/layer_region.h"

namespace meshard::internal {
namespace {

// Values from outside that differ by layer are stacked, which copies them: only small ones, such as
// keys of random numbers, factors and masks.
constexpr std::int64_t kMostVaryingBytes = 1 << 20;

// A recorded value: the node's position in the region, and the result's number.
using Place = std::pair<std::size_t, std::uint32_t>;

// How nodes are assigned to layers. A node belongs at least to the last layer whose slices it
// depends on; nodes that follow the layers are taken to belong to the last one at first.
enum class Assignment : std::uint8_t {
  kByOrder,  ///< a layer begins where its first slice is taken, as in a loop over an nn::Layers
  kByDependence,  ///< a layer begins with the first use of its slices
};

// Compares the layers of one cluster.
class Comparison {
 public:
  Comparison(LayerRegion& region, const LayerCluster& cluster)
      : region_(region), cluster_(cluster), count_(static_cast<std::size_t>(cluster.count)) {}

  // False: why() has the reason; none if the assignment is not possible.
  bool run(Assignment assignment) {
    std::vector<std::size_t> begins;
    if (assignment == Assignment::kByOrder) {
      begins = begins_of_layers();
      if (begins.empty()) return false;
    }
    assign_layers(begins);
    number_outside_values();
    return check_counts() && pair_first() && pair_middle() && pair_last() && check_uses() &&
           check_outside();
  }
  const std::string& why() const { return why_; }
  SourceLocation where() const {
    const std::vector<std::size_t>& first = layers_[0].empty() ? layers_.back() : layers_[0];
    return first.empty() ? region_.node(cluster_.uses[0].first).where()
                         : region_.node(first[0]).where();
  }

  EqualLayers layers() const {
    EqualLayers out;
    out.count = cluster_.count;
    out.reverse = cluster_.reverse;
    out.where = where();
    for (const SlicedStack* stack : cluster_.stacks) {
      out.stacks.push_back({stack->stacked, {}});
      for (std::size_t at : stack->slices[number_of(1)])
        out.stacks.back().slices.push_back(value(at, 0));
    }
    for (const auto& [place, initial] : carries_) {
      auto [position, index] = place;
      std::optional<std::size_t> last = last_[position];
      out.carries.push_back({initial, value(layers_[0][position], index),
                             value(layers_[1][position], index),
                             last ? value(*last, index) : Value()});
    }
    for (const auto& [position, index] : ends_)
      out.carries.push_back(
          {{}, {}, value(layers_[1][position], index), value(*last_[position], index)});
    for (const auto& [id, by_step] : outside_) {
      if (!varies(by_step)) {
        std::optional<std::size_t> from = region_.position(by_step[1]);
        (from && closed_[*from] ? out.closed : out.invariant).push_back(by_step[1]);
        continue;
      }
      EqualLayers::Varying varying{by_step, by_step[1]};
      if (cluster_.reverse) std::reverse(varying.by_layer.begin(), varying.by_layer.end());
      out.varying.push_back(std::move(varying));
    }
    for (std::size_t at : layers_.back())
      if (!is_last_[at]) out.after.push_back(&region_.node(at));
    return out;
  }

 private:
  static constexpr int kOutside = -1;

  Value value(std::size_t at, std::uint32_t index) const {
    return Value(const_cast<Node*>(&region_.node(at)), index);
  }
  // The number of the slice that step `step` of the loop uses.
  std::size_t number_of(std::size_t step) const {
    return cluster_.reverse ? count_ - 1 - step : step;
  }
  bool differs(std::string why) {
    why_ = std::move(why);
    return false;
  }

  // Where each layer's first slice is taken; empty if slices are taken elsewhere, or if the layers
  // but the last one have different numbers of nodes.
  std::vector<std::size_t> begins_of_layers() const {
    std::vector<std::size_t> begins(count_, region_.size()), ends(count_, 0);
    for (const SlicedStack* stack : cluster_.stacks)
      for (std::size_t step = 0; step < count_; ++step)
        for (std::size_t at : stack->slices[number_of(step)]) {
          begins[step] = std::min(begins[step], at);
          ends[step] = std::max(ends[step], at);
        }
    for (std::size_t step = 0; step + 1 < count_; ++step)
      if (ends[step] >= begins[step + 1] ||
          begins[step + 1] - begins[step] != begins[1] - begins[0])
        return {};
    return begins;
  }

  void assign_layers(const std::vector<std::size_t>& begins) {
    layer_.assign(region_.size(), kOutside);
    slice_of_.assign(region_.size(), nullptr);
    layers_.resize(count_);
    for (const SlicedStack* stack : cluster_.stacks)
      for (std::size_t step = 0; step < count_; ++step)
        for (std::size_t at : stack->slices[number_of(step)]) {
          slice_of_[at] = stack;
          layer_[at] = static_cast<int>(step);
        }
    propagate_layers(begins);
    if (!begins.empty()) {
      // Nodes of layer 0 whose counterparts in layer 1 need layer 0: they begin with the initial
      // values.
      for (std::size_t at = begins[0]; at < begins[1]; ++at)
        if (layer_[at + begins[1] - begins[0]] != kOutside) layer_[at] = 0;
      propagate_layers(begins);
    }
    for (std::size_t at = 0; at < region_.size(); ++at)
      if (!slice_of_[at] && layer_[at] != kOutside)
        layers_[static_cast<std::size_t>(layer_[at])].push_back(at);
  }

  void propagate_layers(const std::vector<std::size_t>& begins) {
    closed_.assign(region_.size(), false);
    int current = kOutside;
    for (std::size_t at = 0; at < region_.size(); ++at) {
      auto next = static_cast<std::size_t>(current + 1);
      if (next < begins.size() && at >= begins[next]) ++current;
      if (slice_of_[at]) continue;
      bool is_closed = layer_[at] == kOutside;
      for (const Value& operand : region_.node(at).operands()) {
        std::optional<std::size_t> from = region_.position(operand);
        if (from) layer_[at] = std::max(layer_[at], layer_[*from]);
        is_closed = is_closed && from && closed_[*from];
      }
      if (layer_[at] != kOutside) layer_[at] = std::max(layer_[at], current);
      closed_[at] = is_closed && layer_[at] == kOutside;
    }
  }

  // Layers may compute the same value from outside again, such as a mask: equal values have equal
  // numbers.
  void number_outside_values() {
    number_.assign(region_.size(), 0);
    std::unordered_map<std::string, std::size_t> numbers;
    std::string key;
    for (std::size_t at = 0; at < region_.size(); ++at) {
      if (layer_[at] != kOutside) continue;
      const Node& node = region_.node(at);
      key = cat(reinterpret_cast<std::uintptr_t>(&node.op()), ":", region_.key(at));
      for (const Value& operand : node.operands()) {
        std::optional<std::size_t> from = region_.position(operand);
        key += cat(from ? "|n" : "|o",
                   from ? number_[*from] : reinterpret_cast<std::uintptr_t>(operand.node()), ".",
                   operand.index());
      }
      number_[at] = numbers.try_emplace(key, at).first->second;
    }
  }
  bool same_outside(const Value& a, const Value& b) const {
    if (a.index() != b.index()) return false;
    std::optional<std::size_t> from_a = region_.position(a), from_b = region_.position(b);
    if (!from_a || !from_b) return a == b;
    return layer_[*from_a] == kOutside && layer_[*from_b] == kOutside &&
           number_[*from_a] == number_[*from_b] &&
           same_annotations(region_.node(*from_a), region_.node(*from_b));
  }

  bool check_counts() {
    std::size_t length = layers_[1].size();
    for (std::size_t step = 0; step + 1 < count_; ++step)
      if (layers_[step].size() != length)
        return differs(cat("layer ", number_of(step), " records ", layers_[step].size(),
                           " operations of its own, layer ", number_of(1), " records ", length));
    if (length == 0) return differs("nothing is computed with the slices but in the last layer");
    // Positions within each layer but the last one.
    within_.assign(region_.size(), 0);
    for (std::size_t step = 0; step + 1 < count_; ++step)
      for (std::size_t p = 0; p < length; ++p) {
        std::size_t at = layers_[step][p];
        within_[at] = p;
        if (!region_.same_call(at, layers_[1][p])) return differs_at(step, p);
      }
    return true;
  }
  bool differs_at(std::size_t step, std::size_t p) {
    const Node &node = region_.node(layers_[step][p]), &second = region_.node(layers_[1][p]);
    return differs(cat("layer ", number_of(step), " differs from layer ", number_of(1), ": ",
                       node.op().name, " at ", node.where(), ", ", second.op().name, " at ",
                       second.where()));
  }

  bool is_outside(const Value& value) const {
    std::optional<std::size_t> from = region_.position(value);
    return !from || layer_[*from] == kOutside;
  }
  // Layer `step` uses `value` where layer 1 uses `second`; both are from outside. False if it uses
  // another value elsewhere, where layer 1 uses the same.
  bool note_outside(const Value& second, std::size_t step, const Value& value) {
    std::vector<Value>& by_step = outside_[{second->id(), second.index()}];
    by_step.resize(count_);
    by_step[1] = second;
    if (second.type() != value.type()) return false;
    if (by_step[step]) return same_outside(by_step[step], value);
    by_step[step] = value;
    return true;
  }
  bool varies(const std::vector<Value>& by_step) const {
    return std::any_of(by_step.begin(), by_step.end(), [&](const Value& value) {
      return value && !same_outside(value, by_step[1]);
    });
  }
  bool check_outside() {
    for (auto& [id, by_step] : outside_) {
      const Value& second = by_step[1];
      if (!by_step.back()) by_step.back() = by_step[by_step.size() - 2];  // not used
      if (!varies(by_step) || second.type().bytes() <= kMostVaryingBytes) continue;
      return differs(cat("each layer uses another value from outside, ", second.type(), " made at ",
                         second->where(), ", too large to copy"));
    }
    return true;
  }
  bool is_slice(const Value& operand, std::size_t step) const {
    std::optional<std::size_t> from = region_.position(operand);
    return from && slice_of_[*from] && layer_[*from] == static_cast<int>(step);
  }
  // The place within its layer of a value that layer `step` computes.
  std::optional<Place> computed_in(const Value& operand, std::size_t step) const {
    std::optional<std::size_t> from = region_.position(operand);
    if (!from || slice_of_[*from] || layer_[*from] != static_cast<int>(step)) return std::nullopt;
    return Place(within_[*from], operand.index());
  }

  // What layer 1 uses of layer 0 is carried; layer 0 shows the initial values.
  bool pair_first() {
    for (std::size_t p = 0; p < layers_[1].size(); ++p) {
      std::span<const Value> first = operands(0, p), second = operands(1, p);
      for (std::size_t k = 0; k < second.size(); ++k) {
        if (std::optional<Place> carry = computed_in(second[k], 0)) {
          if (computed_in(first[k], 0) || is_slice(first[k], 0)) return differs_at(0, p);
          auto [entry, is_new] = carries_.try_emplace(*carry, first[k]);
          if (!is_new && !(entry->second == first[k]) && !same_outside(entry->second, first[k]))
            return differs(cat("layer ", number_of(0), " starts with several values, at ",
                               region_.node(layers_[0][p]).where(), ", where layer ", number_of(1),
                               " uses one value of layer ", number_of(0)));
          if (first[k].type() != second[k].type())
            return differs(cat("the value that the layers pass on changes from ", first[k].type(),
                               " to ", second[k].type()));
        } else if (!paired(second[k], 0, first[k])) {
          return differs_at(0, p);
        }
      }
    }
    if (carries_.empty()) return differs("no layer uses a result of the layer before it");
    return true;
  }
  // Layer `step` uses `value` where layer 1 uses `second`, which is not of layer 0: both are slices
  // of one stack, computed at the same place, or from outside.
  bool paired(const Value& second, std::size_t step, const Value& value) {
    if (std::optional<Place> place = computed_in(second, 1))
      return place == computed_in(value, step);
    if (is_slice(second, 1))
      return is_slice(value, step) &&
             slice_of_[*region_.position(second)] == slice_of_[*region_.position(value)];
    return is_outside(second) && is_outside(value) && note_outside(second, step, value);
  }
  std::span<const Value> operands(std::size_t step, std::size_t p) const {
    return region_.node(layers_[step][p]).operands();
  }

  bool pair_middle() {
    for (std::size_t step = 2; step + 1 < count_; ++step)
      for (std::size_t p = 0; p < layers_[1].size(); ++p) {
        std::span<const Value> second = operands(1, p), here = operands(step, p);
        for (std::size_t k = 0; k < here.size(); ++k)
          if (std::optional<Place> carry = computed_in(second[k], 0);
              carry ? computed_in(here[k], step - 1) != carry : !paired(second[k], step, here[k]))
            return differs_at(step, p);
      }
    return true;
  }

  // The last layer's nodes are found by their operands: nodes that follow the layers belong to
  // the same group, and those that only a further layer would use are missing.
  bool pair_last() {
    std::size_t last = count_ - 1;
    is_last_.assign(region_.size(), false);
    last_.assign(layers_[1].size(), std::nullopt);
    std::unordered_multimap<std::string, std::size_t> by_operands;
    for (std::size_t at : layers_[last]) by_operands.emplace(signature(region_.node(at)), at);
    std::size_t found_any = 0;
    std::string wanted;
    for (std::size_t p = 0; p < layers_[1].size(); ++p) {
      if (!signature_in_last(p, wanted)) continue;
      auto [begin, end] = by_operands.equal_range(wanted);
      std::optional<std::size_t> match;
      for (auto each = begin; each != end; ++each)
        if (region_.same_call(each->second, layers_[1][p]) && (!match || each->second < *match) &&
            !is_last_[each->second] && has_outside_of(p, each->second))
          match = each->second;
      if (!match) continue;
      std::span<const Value> second = operands(1, p), here = region_.node(*match).operands();
      for (std::size_t k = 0; k < here.size(); ++k)
        if (is_outside(second[k])) note_outside(second[k], last, here[k]);
      is_last_[*match] = true;
      last_[p] = *match;
      ++found_any;
    }
    if (found_any == 0)
      return differs(
          cat("layer ", number_of(last), " has nothing in common with layer ", number_of(1)));
    return true;
  }
  std::string operand_text(const Value& operand) const {
    if (is_outside(operand)) return "|o";
    std::optional<std::size_t> from = region_.position(operand);
    if (slice_of_[*from])
      return cat("|s", reinterpret_cast<std::uintptr_t>(slice_of_[*from]), ".", layer_[*from]);
    return cat("|n", *from, ".", operand.index());
  }
  std::string signature(const Node& node) const {
    std::string text = cat(reinterpret_cast<std::uintptr_t>(&node.op()));
    for (const Value& operand : node.operands()) text += operand_text(operand);
    return text;
  }
  // True if node `at` uses the values from outside that the last layer's node number p would use:
  // the same as all other layers do, or any if theirs differ.
  bool has_outside_of(std::size_t p, std::size_t at) const {
    std::span<const Value> second = operands(1, p), here = region_.node(at).operands();
    for (std::size_t k = 0; k < here.size(); ++k) {
      if (!is_outside(second[k])) continue;
      const std::vector<Value>& by_step = outside_.at({second[k]->id(), second[k].index()});
      if (second[k].type() != here[k].type()) return false;
      if (by_step.back() ? !same_outside(by_step.back(), here[k])
                         : !varies(by_step) && !same_outside(second[k], here[k]))
        return false;
    }
    return true;
  }
  // The signature of the last layer's node number p; false if its operands are missing there.
  bool signature_in_last(std::size_t p, std::string& text) const {
    std::size_t last = count_ - 1;
    text = cat(reinterpret_cast<std::uintptr_t>(&region_.node(layers_[1][p]).op()));
    for (const Value& operand : operands(1, p)) {
      if (std::optional<Place> carry = computed_in(operand, 0)) {
        text += cat("|n", layers_[last - 1][carry->first], ".", carry->second);
      } else if (std::optional<Place> here = computed_in(operand, 1)) {
        if (!last_[here->first]) return false;
        text += cat("|n", *last_[here->first], ".", here->second);
      } else if (is_slice(operand, 1)) {
        text += cat("|s", reinterpret_cast<std::uintptr_t>(slice_of_[*region_.position(operand)]),
                    ".", last);
      } else {
        text += operand_text(operand);
      }
    }
    return true;
  }

  // Outside of the layers, only values of the last layer may be used.
  bool check_uses() {
    std::size_t last = count_ - 1;
    auto leaks = [&](const Value& value) {
      std::optional<std::size_t> from = region_.position(value);
      if (!from || slice_of_[*from] || layer_[*from] == kOutside) return false;
      auto step = static_cast<std::size_t>(layer_[*from]);
      if (step < last)
        return !differs(cat("a value of layer ", number_of(step), ", made at ",
                            region_.node(*from).where(), ", is used after the layers"));
      if (!is_last_[*from]) return false;
      auto p =
          static_cast<std::size_t>(std::find(last_.begin(), last_.end(), from) - last_.begin());
      if (!carries_.contains({p, value.index()})) ends_.insert({p, value.index()});
      return false;
    };
    for (std::size_t at : layers_[last])
      if (!is_last_[at])
        for (const Value& operand : region_.node(at).operands())
          if (leaks(operand)) return false;
    for (const Value& result : region_.results())
      if (result && leaks(result)) return false;
    return true;
  }

  LayerRegion& region_;
  const LayerCluster& cluster_;
  std::size_t count_;
  std::string why_;
  std::vector<int> layer_;                        // by position
  std::vector<const SlicedStack*> slice_of_;      // by position; null unless a slice
  std::vector<bool> closed_;                      // by position: depends on nothing but constants
  std::vector<std::size_t> number_;               // of values from outside
  std::vector<std::vector<std::size_t>> layers_;  // positions
  std::vector<std::size_t> within_;               // place within the layer, by position
  std::map<Place, Value> carries_;                // and their initial values
  std::set<Place> ends_;                          // used after the last layer, not passed on
  // By the value from outside that layer 1 uses: what each layer uses there.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<Value>> outside_;
  std::vector<bool> is_last_;                     // by position: belongs to the last layer
  std::vector<std::optional<std::size_t>> last_;  // by place: the last layer's node
};

}  // namespace

LayerSearch find_equal_layers(std::span<const Value> results, std::uint64_t trace,
                              std::uint64_t first) {
  LayerSearch search;
  LayerRegion region(results, trace, first);
  std::vector<SlicedStack> stacks = sliced_stacks(region);
  for (const LayerCluster& cluster : layer_clusters(stacks)) {
    std::optional<UnrolledLayers> unrolled;
    for (Assignment assignment : {Assignment::kByOrder, Assignment::kByDependence}) {
      Comparison comparison(region, cluster);
      if (comparison.run(assignment)) {
        search.found = comparison.layers();
        return search;
      }
      if (!unrolled && !comparison.why().empty())
        unrolled = {cluster.count, comparison.why(), comparison.where()};
    }
    if (unrolled) search.unrolled.push_back(*std::move(unrolled));
  }
  return search;
}

}  // namespace meshard::internal
