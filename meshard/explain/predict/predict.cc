#include "meshard/explain/predict/predict.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "meshard/explain/byte_text.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/explain/predict/op_moves.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/lower.h"
#include "meshard/trace/trace_function.h"

namespace meshard {
namespace {

using Lists = std::vector<AxisList>;  // axes by dimension

bool is_prefix(const AxisList& shorter, const AxisList& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

class Planner {
 public:
  Planner(const TensorType& type, const Sharding& from, const Sharding& to)
      : type_(type), mesh_(from.mesh()), now_(lists(from)), wanted_(lists(to)) {}

  ReshardPlan run() {
    if (now_ == wanted_) return {};
    if (tiles_divide(now_, wanted_)) {
      cut_then_permute();
    } else if (tiles_divide(wanted_, now_)) {
      permute_then_gather();
    } else if (!exchange() && !exchange_then_cut() && !cut_then_exchange() &&
               !gather_then_exchange()) {
      gather_all();
      plan_.full_rematerialization = true;
    }
    return std::move(plan_);
  }

 private:
  Lists lists(const Sharding& sharding) const {
    Lists axes(static_cast<std::size_t>(type_.rank()));
    for (std::size_t d = 0; d < sharding.rank(); ++d)
      for (const AxisRef& axis : sharding.axes(d))
        if (sharding.mesh().axis_size(axis) > 1) axes[d].push_back(axis);
    return axes;
  }
  std::int64_t tiles(const AxisList& axes) const {
    std::int64_t product = 1;
    for (const AxisRef& axis : axes) product *= mesh_.axis_size(axis);
    return product;
  }
  std::int64_t count(const Lists& all) const {
    std::int64_t product = 1;
    for (const AxisList& axes : all) product *= tiles(axes);
    return product;
  }
  bool tiles_divide(const Lists& fewer, const Lists& more) const {
    for (std::size_t d = 0; d < fewer.size(); ++d)
      if (tiles(more[d]) % tiles(fewer[d]) != 0) return false;
    return true;
  }
  // Size of one shard with these axes.
  std::int64_t bytes(const Lists& all) const {
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < all.size(); ++d) {
      std::int64_t size = type_.shape[static_cast<int>(d)], parts = tiles(all[d]);
      elements *= (size + parts - 1) / parts;
    }
    return elements * static_cast<std::int64_t>(size_in_bytes(type_.dtype));
  }
  void add(CollectiveKind kind, AxisList axes, std::int64_t bytes) {
    plan_.steps.push_back({kind, std::move(axes), bytes});
  }

  void permute_if_needed() {
    if (now_ != wanted_) add(CollectiveKind::kCollectivePermute, {}, bytes(wanted_));
    now_ = wanted_;
  }

  void cut_then_permute() {
    bool in_place = true;
    for (std::size_t d = 0; d < now_.size(); ++d)
      in_place = in_place && is_prefix(now_[d], wanted_[d]);
    if (in_place) now_ = wanted_;
    permute_if_needed();
  }

  void permute_then_gather() {
    bool in_place = true;
    for (std::size_t d = 0; d < now_.size(); ++d)
      in_place = in_place && is_prefix(wanted_[d], now_[d]);
    if (!in_place) add(CollectiveKind::kCollectivePermute, {}, bytes(now_));
    for (std::size_t d = now_.size(); d-- > 0;) {
      AxisList gathered;
      if (in_place) gathered.assign(now_[d].begin() + wanted_[d].size(), now_[d].end());
      bool fewer = tiles(wanted_[d]) < tiles(now_[d]);
      now_[d] = wanted_[d];
      if (fewer) add(CollectiveKind::kAllGather, std::move(gathered), bytes(now_));
    }
  }

  void gather_all() {
    for (std::size_t d = now_.size(); d-- > 0;) {
      if (now_[d].empty()) continue;
      AxisList gathered = std::exchange(now_[d], AxisList());
      add(CollectiveKind::kAllGather, std::move(gathered), bytes(now_));
    }
  }

  // Removes the last axes of a list that make `parts` tiles; false if no axes make exactly these.
  bool take_last(AxisList& axes, std::int64_t parts, AxisList& taken) const {
    AxisList reversed;
    while (parts > 1 && !axes.empty()) {
      AxisRef axis = axes.back();
      std::int64_t size = mesh_.axis_size(axis);
      axes.pop_back();
      if (parts % size == 0) {
        reversed.push_back(axis);
        parts /= size;
      } else if (size % parts == 0) {
        std::int64_t pre = axis.is_whole() ? 1 : axis.pre_size, rest = size / parts;
        axes.push_back(AxisRef(axis.name, pre, rest));
        reversed.push_back(AxisRef(axis.name, pre * rest, parts));
        parts = 1;
      } else {
        return false;
      }
    }
    taken.assign(reversed.rbegin(), reversed.rend());
    return parts == 1;
  }

  struct Move {
    std::size_t from, to;
    std::int64_t parts;
  };

  // The transfers of tiles from dimensions with too many to those with too few. Empty if the counts
  // do not match, or if a dimension would exchange different numbers of parts with two others.
  std::vector<Move> moves() const {
    std::vector<Move> found;
    std::vector<std::int64_t> have, want;
    for (std::size_t d = 0; d < now_.size(); ++d) {
      have.push_back(tiles(now_[d]));
      want.push_back(tiles(wanted_[d]));
      if (have[d] % want[d] != 0 && want[d] % have[d] != 0) return {};
    }
    for (std::size_t from = 0; from < have.size(); ++from)
      for (std::size_t to = 0; to < have.size(); ++to) {
        if (have[from] <= want[from] || have[to] >= want[to]) continue;
        std::int64_t parts = std::gcd(have[from] / want[from], want[to] / have[to]);
        if (parts <= 1) continue;
        have[from] /= parts;
        have[to] *= parts;
        found.push_back({from, to, parts});
      }
    if (have != want) return {};
    for (const Move& a : found)
      for (const Move& b : found)
        if ((a.from == b.from || a.to == b.to) && a.parts != b.parts) return {};
    return found;
  }

  // The number of tiles stays the same: each move is an all-to-all.
  bool exchange() {
    if (count(now_) != count(wanted_)) return false;
    std::vector<Move> all = moves();
    if (all.empty()) return false;
    std::int64_t size = bytes(wanted_);
    for (const Move& move : all) {
      AxisList moved;
      bool whole = take_last(now_[move.from], move.parts, moved);
      if (whole)
        for (const AxisRef& axis : moved) push_axis(mesh_, now_[move.to], axis);
      add(CollectiveKind::kAllToAll, whole ? moved : AxisList(), size);
    }
    // With several exchanges, the partitioner chooses groups such that the tiles end in place.
    if (all.size() > 1) now_ = wanted_;
    permute_if_needed();
    return true;
  }

  bool is_used(const AxisRef& axis) const {
    for (const AxisList& axes : now_)
      for (const AxisRef& used : axes)
        if (axis.overlaps(used)) return true;
    return false;
  }

  // One all-to-all to an earlier dimension, after which devices only slice the dimension that the
  // axes came from; for a target sharding that uses all devices.
  bool exchange_then_cut() {
    Lists before = now_, target = wanted_;
    for (AxisList& axes : wanted_)
      while (!axes.empty() && !is_used(axes.back())) axes.pop_back();
    std::vector<Move> all = count(now_) == count(wanted_) ? moves() : std::vector<Move>();
    bool fits = all.size() == 1 && all[0].to < all[0].from && count(target) == mesh_.size();
    for (std::size_t d = 0; d < now_.size() && fits; ++d)
      fits = d == all[0].from || wanted_[d] == target[d];
    bool done = fits && exchange() && plan_.steps.size() == 1;
    wanted_ = target;
    if (!done) {
      plan_.steps.clear();
      now_ = before;
    }
    return done;
  }

  // Devices slice whole dimensions until the number of tiles matches; only if the target sharding
  // has one tile for each device.
  bool cut_then_exchange() {
    Lists before = now_;
    if (count(wanted_) != mesh_.size()) return false;
    for (std::size_t d = 0; d < now_.size(); ++d) {
      if (count(wanted_) % count(now_) != 0) break;
      std::int64_t parts = std::gcd(tiles(wanted_[d]), count(wanted_) / count(now_));
      if (!now_[d].empty() || parts <= 1) continue;
      now_[d] = cut_axes(wanted_[d], parts);
    }
    if (count(now_) == count(wanted_) && exchange()) return true;
    now_ = before;
    return false;
  }

  // The first wanted axes if they are unused and make this many parts, else any unused axes.
  AxisList cut_axes(const AxisList& wanted, std::int64_t parts) const {
    for (bool as_wanted : {true, false}) {
      AxisList cut;
      std::int64_t left = parts;
      auto take = [&](const AxisRef& axis) {
        std::int64_t size = mesh_.axis_size(axis);
        if (left == 1 || size == 1 || is_used(axis) || left % size != 0) return false;
        cut.push_back(axis);
        left /= size;
        return true;
      };
      if (as_wanted) {
        for (const AxisRef& axis : wanted)
          if (!take(axis)) break;
      } else {
        for (const MeshAxis& axis : mesh_.axes()) (void)take(AxisRef(axis.name));
      }
      if (left == 1) return cut;
    }
    return {};
  }

  // Gathers one dimension, so that the rest is an exchange.
  bool gather_then_exchange() {
    for (std::size_t d = 0; d < now_.size(); ++d) {
      if (now_[d].empty()) continue;
      Lists before = now_;
      AxisList gathered = std::exchange(now_[d], AxisList());
      if (count(now_) == count(wanted_)) {
        add(CollectiveKind::kAllGather, std::move(gathered), bytes(now_));
        if (exchange()) return true;
        plan_.steps.clear();
      }
      now_ = before;
    }
    return false;
  }

  TensorType type_;
  Mesh mesh_;
  Lists now_, wanted_;
  ReshardPlan plan_;
};

// What `n7` or `n7.0.3` in a lowered module stands for: a node, as Graph::find takes it.
std::optional<ModulePlace> place_in(const Graph& graph, std::string_view name) {
  if (!name.starts_with('n')) return std::nullopt;
  name.remove_prefix(1);
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc()) return std::nullopt;
  const Node* node = graph.find(name);
  if (!node)
    return ModulePlace{
        {number, cat("argument ", number), graph.source(number).to_string(), std::string(name)}};
  bool is_mark = marked_sharding(Value(const_cast<Node*>(node))).has_value();
  return ModulePlace{
      {number, std::string(node->op().name), node->where().to_string(), std::string(name)},
      is_mark};
}

// Sets the shardings of main's arguments or results. Those over another mesh are not known.
void set_shardings(const Mesh& mesh, const std::vector<LoweredValue>& lowered,
                   const std::vector<std::optional<std::size_t>>& numbers,
                   std::vector<PartialSharding>& values) {
  for (std::size_t i = 0; i < lowered.size() && i < numbers.size(); ++i) {
    const std::optional<Sharding>& sharding = lowered[i].sharding;
    if (!numbers[i] || !sharding) continue;
    PartialSharding& value = values[*numbers[i]];
    value = sharding->mesh() == mesh ? PartialSharding::of(*sharding, value.axes.size())
                                     : PartialSharding();
  }
}

}  // namespace

Collective predicted_collective(CollectiveKind kind, const AxisList& axes, std::int64_t bytes,
                                std::int64_t devices) {
  Collective one;
  one.kind = kind;
  one.bytes_in = one.bytes_out = bytes;
  if (!axes.empty())
    one.axes = axes;
  else
    one.group_size = devices;
  return one;
}

std::int64_t ReshardPlan::bytes() const {
  std::int64_t sum = 0;
  for (const ReshardStep& step : steps) sum += step.bytes;
  return sum;
}

ReshardPlan plan_reshard(const TensorType& type, const Sharding& from, const Sharding& to) {
  return Planner(type, from, to).run();
}

std::string PredictedMove::to_string() const {
  std::string text(meshard::to_string(kind));
  if (!axes.empty())
    append(text, axes.size() == 1 ? " on axis " : " on axes ",
           axes.size() == 1 ? axes[0].to_string() : meshard::to_string(axes));
  append(text, ", ", byte_text(bytes), repetition_text(executions, executions_known, conditional));
  if (full_rematerialization) append(text, " (the whole value on every device)");
  append(text, ", of ", type);
  if (from) append(text, " ", from->spec());
  if (to && from && *to != *from) append(text, " to ", to->spec());
  append(text, ", from ", origin.to_string());
  if (!cause.empty()) append(text, ": ", cause);
  if (!suggestion.empty()) append(text, "; ", suggestion);
  return text;
}

std::vector<PredictedMove> Prediction::of(CollectiveKind kind) const {
  std::vector<PredictedMove> found;
  for (const PredictedMove& move : moves)
    if (move.kind == kind) found.push_back(move);
  return found;
}

std::int64_t Prediction::bytes() const {
  std::int64_t sum = 0;
  for (const PredictedMove& move : moves) sum = saturating_add(sum, move.total_bytes());
  return sum;
}

std::string Prediction::to_string() const {
  std::string text = cat(moves.size(), moves.size() == 1 ? " collective" : " collectives",
                         " predicted, ", byte_text(bytes()), " per device\n");
  for (const PredictedMove& move : moves) append(text, "  ", move, "\n");
  for (const std::string& note : notes) append(text, "note: ", note, "\n");
  return text;
}

Graph internal::graph_for_prediction(
    std::span<const Tensor> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& f) {
  // Only the types and shardings of the arguments matter.
  std::vector<Tensor> abstract;
  for (const Tensor& argument : arguments) {
    const Sharding* sharding = leaf_sharding(argument.value());
    abstract.push_back(abstract_tensor(
        argument.type(), sharding ? std::optional(*sharding) : marked_sharding(argument.value()),
        argument.where()));
  }
  std::vector<const Tensor*> given;
  for (const Tensor& argument : abstract) given.push_back(&argument);
  return trace_function(given, [&](std::span<const Tensor> parameters) { return f(parameters); },
                        {});
}

Prediction predict(const Graph& graph) {
  Program traced;
  traced.name = "main";
  traced.graph = graph;
  LoweredModule lowered = lower(traced);
  if (!lowered.mesh) return {.moves = {}, .results = {}, .notes = {"no value is sharded"}};
  const Mesh& mesh = *lowered.mesh;
  stablehlo::Module module = stablehlo::Module::parse(std::move(lowered.text)).value();
  ModuleProgram program = ModuleProgram::of(module, [&](std::string_view name) {
                            return place_in(graph, name);
                          }).value();
  std::vector<PartialSharding> values = program.given_shardings(mesh);
  set_shardings(mesh, lowered.arguments, program.arguments(), values);
  set_shardings(mesh, lowered.results, program.results(), values);
  propagate_program(mesh, program.rules().ops, values);
  ProgramMoves found = predict_moves(mesh, program.rules(), values);
  Prediction made{.moves = std::move(found.moves), .results = {}, .notes = {}};
  for (const std::optional<std::size_t>& result : program.results())
    made.results.push_back(result ? values[*result].sharding(mesh) : std::nullopt);
  if (std::size_t left_out = program.all_ops() - program.known_ops() + found.left_out; left_out > 0)
    made.notes.push_back(cat(left_out, " of ", program.all_ops(),
                             " operations are left out: they have no sharding rule, or their "
                             "values are on a mesh other than ",
                             mesh));
  return made;
}

}  // namespace meshard
