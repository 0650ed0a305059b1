#include "meshard/explain/collectives/origin.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/base/field_notes.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {
namespace {

// The last `folders` + 1 components of a path.
std::string_view tail(std::string_view path, int folders) {
  std::size_t at = path.size();
  for (int i = 0; i <= folders; ++i) {
    if (at == 0) return path;
    at = path.rfind('/', at - 1);
    if (at == std::string_view::npos) return path;
  }
  return path.substr(at + 1);
}

// Follows a Python installation's folder, `lib/python3.12/`.
bool is_in_python_library(std::string_view path) {
  constexpr std::string_view kFolder = "/lib/python3";
  std::size_t at = path.find(kFolder);
  return at != std::string_view::npos &&
         path.find('/', at + kFolder.size()) != std::string_view::npos;
}

// Limit of the search for a name: names are usually near, and programs are large.
constexpr std::size_t kMostVisited = 4096;

// Names that compilers give to instructions of their own, `slice.4`: without a scope, and numbered.
bool is_compiler_name(std::string_view op_name) {
  std::size_t dot = op_name.rfind('.');
  return dot != std::string_view::npos && dot + 1 < op_name.size() &&
         op_name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos &&
         op_name.find_first_of("/[") == std::string_view::npos;
}

// Ops whose communication the program itself requests: marks and collectives.
bool is_request(const OriginPlace& place) {
  const OpDef* op = find_op(place.op);
  return op && (op->traits.marks_sharding || op->traits.is_collective);
}

// Collectives that XLA combines.
bool may_be_combined(CollectiveKind kind) {
  return is_reduction(kind) || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kCollectivePermute;
}

}  // namespace

bool is_library_file(std::string_view path) {
  if (path.starts_with("<")) return true;
  for (std::string_view folder : {"/site-packages/", "/dist-packages/", "/jax/_src/"})
    if (path.find(folder) != std::string_view::npos) return true;
  return is_in_python_library(path);
}

SourcePlaces::SourcePlaces(const HloModule& module) : module_(&module) {
  std::set<std::string> files;
  for (const HloFrame& frame : module.frames) files.insert(frame.file);
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& each : computation.instructions)
      files.insert(each.metadata.source_file);
  files.erase("");
  std::unordered_map<std::string_view, std::vector<const std::string*>> alike;
  for (const std::string& file : files) alike[tail(file, 0)].push_back(&file);
  for (const auto& [name, paths] : alike) {
    if (paths.size() == 1) continue;  // named without folders
    int folders = 1;
    for (bool unique = false; !unique; ++folders) {
      std::unordered_set<std::string_view> tails;
      for (const std::string* path : paths) tails.insert(tail(*path, folders));
      unique = tails.size() == paths.size();
      if (unique) break;
    }
    for (const std::string* path : paths) short_names_.emplace(*path, tail(*path, folders));
  }
}

std::string SourcePlaces::line(const std::string& file, std::int64_t number) const {
  if (file.empty()) return "";
  auto found = short_names_.find(file);
  std::string_view name = found == short_names_.end() ? tail(file, 0) : found->second;
  return cat(name, ":", number);
}

SourcePlace SourcePlaces::of(const HloMetadata& metadata) const {
  SourcePlace own{.place = line(metadata.source_file, metadata.source_line), .via = {}};
  if (!module_) return own;
  const std::vector<HloFrame>& frames = module_->frames;
  std::string innermost;
  // The number of steps is limited, because a damaged module could have a cycle.
  std::int64_t at = metadata.stack_frame;
  for (std::size_t step = 0; step < frames.size() && at >= 1 && at <= std::ssize(frames); ++step) {
    const HloFrame& frame = frames[static_cast<std::size_t>(at - 1)];
    at = frame.parent;
    if (frame.file.empty()) continue;
    if (!is_library_file(frame.file))
      return {.place = line(frame.file, frame.line), .via = innermost};
    if (innermost.empty()) innermost = line(frame.file, frame.line);
  }
  return own;
}

void name_by_lines(const std::map<std::int64_t, std::string>& names, HloModule& module) {
  if (names.empty()) return;
  std::unordered_map<std::string, std::int64_t> lines;  // by name; 0: of several ops
  for (const auto& [line, name] : names) {
    auto [found, is_new] = lines.emplace(name, line);
    if (!is_new) found->second = 0;
  }
  for (HloComputation& computation : module.computations)
    for (HloInstruction& each : computation.instructions) {
      HloMetadata& metadata = each.metadata;
      if (metadata.op_name.empty() && metadata.source_file == "-") {
        auto found = names.find(metadata.source_line);
        if (found != names.end()) metadata.op_name = found->second;
      } else if (!metadata.op_name.empty() && metadata.source_file.empty()) {
        auto found = lines.find(op_of_instruction(metadata.op_name));
        if (found == lines.end() || found->second == 0) continue;
        metadata.source_file = "-";
        metadata.source_line = found->second;
      }
    }
}

std::string_view last_part(std::string_view op_name) {
  std::size_t slash = op_name.rfind('/');
  return slash == std::string_view::npos ? op_name : op_name.substr(slash + 1);
}

std::string_view node_path_in_op_name(std::string_view op_name) {
  std::string_view last = last_part(op_name);
  if (last.size() < 2 || last[0] != 'n' || last[1] == '.' || last.back() == '.') return {};
  last.remove_prefix(1);
  bool is_path = last.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_path ? last : std::string_view();
}

std::optional<std::uint32_t> node_in_op_name(std::string_view op_name) {
  std::string_view path = node_path_in_op_name(op_name);
  std::string_view first = path.substr(0, path.find('.'));
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), number);
  if (error != std::errc() || end != first.data() + first.size()) return std::nullopt;
  return number;
}

bool names_op_with(bool OpTraits::*trait, std::string_view op_name) {
  std::string_view last = last_part(op_name);
  for (const OpDef* op : all_ops())
    if (op->traits.*trait && (last.starts_with(op->name) || last.ends_with(op->name))) return true;
  return false;
}

std::string op_of_instruction(std::string_view op_name) {
  std::string last(last_part(op_name));
  std::size_t dot = last.rfind('.');
  bool numbered = dot != std::string::npos && dot + 1 < last.size() &&
                  last.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  if (numbered) last.resize(dot);
  std::ranges::replace(last, '-', '_');
  return last;
}

bool names_called_collective(std::string_view op_name) {
  // The primitives of jax.lax; a suffix tells variants apart, `psum_invariant`. The ops of
  // StableHLO.
  static constexpr std::string_view kPrimitives =
      "psum pmax pmin ppermute pbroadcast all_gather all_to_all psum_scatter reduce_scatter "
      "ragged_all_to_all pshuffle collective_permute all_reduce collective_broadcast";
  constexpr std::string_view kVariant = "_invariant";
  const std::string last = op_of_instruction(op_name);
  std::string_view primitive = last;
  if (primitive.ends_with(kVariant)) primitive.remove_suffix(kVariant.size());
  return lists_name(kPrimitives, primitive);
}

std::vector<std::string> names_in_op_name(std::string_view op_name) {
  if (op_name.empty()) return {};
  // Scans back from the closing parenthesis to the matching opening one.
  std::size_t bracket = op_name.back() == ')' ? op_name.size() - 1 : 0;
  for (int depth = 1; depth > 0 && bracket > 0;) {
    --bracket;
    depth += op_name[bracket] == ')' ? 1 : op_name[bracket] == '(' ? -1 : 0;
  }
  bool joined = op_name[bracket] == '(' && (bracket == 0 || op_name[bracket - 1] == '/');
  if (!joined) return {std::string(op_name)};
  std::vector<std::string> names;
  std::string_view before = op_name.substr(0, bracket);
  std::string_view parts = op_name.substr(bracket + 1, op_name.size() - bracket - 2);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= parts.size(); ++i) {
    if (i < parts.size()) depth += parts[i] == '(' ? 1 : parts[i] == ')' ? -1 : 0;
    if (i < parts.size() && (parts[i] != ':' || depth > 0)) continue;
    if (i > begin) names.push_back(cat(before, parts.substr(begin, i - begin)));
    begin = i + 1;
  }
  return names;
}

OriginFinder::OriginFinder(const Graph* graph, const HloModule* module) {
  if (module) places_ = SourcePlaces(*module);
  if (graph == nullptr) {
    if (module)
      for (const HloComputation& computation : module->computations)
        for (const HloInstruction& instruction : computation.instructions)
          if (!places_.of(instruction.metadata).place.empty())
            lines_.try_emplace(instruction.metadata.op_name, &instruction.metadata);
    return;
  }
  graph_ = *graph;
  marked_.resize(graph_->num_leaves() + graph_->nodes().size(), false);
  for (const Node* node : graph_->nodes())
    if (node->op().traits.marks_sharding)
      for (const Value& operand : node->operands()) marked_[graph_->number(operand.node())] = true;
}

OriginPlace foreign_place(std::string_view op_name, SourcePlace place) {
  const std::string_view op = without_phase(op_name);
  return {.node = std::nullopt,
          .op = std::string(op),
          .place = std::move(place.place),
          .path = std::string(op == op_name ? std::string_view() : op_name),
          .via = std::move(place.via)};
}

std::optional<OriginPlace> OriginFinder::named(const HloInstruction& instruction) const {
  if (!graph_ && instruction.opcode == "parameter" && instruction.metadata.source_file.empty())
    return std::nullopt;
  std::vector<std::string> names = names_in_op_name(instruction.metadata.op_name);
  if (names.size() > 1) return std::nullopt;
  return named(instruction.metadata, names.empty() ? "" : names[0]);
}

std::optional<OriginPlace> OriginFinder::named(const HloMetadata& metadata,
                                               std::string_view op_name) const {
  if (!graph_) {
    if (op_name.empty() && metadata.source_file.empty()) return std::nullopt;
    SourcePlace place = places_.of(metadata);
    if (auto other = lines_.find(op_name); place.place.empty() && other != lines_.end())
      place = places_.of(*other->second);
    return foreign_place(op_name, std::move(place));
  }
  std::optional<std::uint32_t> number = node_in_op_name(op_name);
  if (!number || *number >= marked_.size()) return std::nullopt;
  std::string path(node_path_in_op_name(op_name));
  const Node* node = graph_->find(path);
  if (!node)
    return OriginPlace{number, cat("argument ", *number), graph_->source(*number).to_string(),
                       std::move(path)};
  return OriginPlace{number, std::string(node->op().name), node->where().to_string(),
                     std::move(path)};
}

bool OriginFinder::is_weak(const OriginPlace& place) const {
  if (graph_) return place.node && *place.node < graph_->num_leaves();
  return place.place.empty() && is_compiler_name(place.op);
}

// Breadth-first search; returns all instructions of the first step that contains an op name.
OriginFinder::Instructions OriginFinder::nearest(const InstructionIndex& index,
                                                 const HloInstruction& from, bool to_users) const {
  std::unordered_set<std::int64_t> seen = {from.id};
  Instructions step = {&from};
  while (!step.empty() && seen.size() < kMostVisited) {
    Instructions next, hits;
    for (const HloInstruction* one : step)
      for (const HloInstruction* other : to_users ? index.users(*one) : index.operands(*one)) {
        if (!seen.insert(other->id).second) continue;
        next.push_back(other);
        if (auto place = named(*other); place && !is_weak(*place)) hits.push_back(other);
      }
    if (!hits.empty()) return hits;
    step = std::move(next);
  }
  return {};
}

// The op named by the nearest producer, else by the nearest user.
std::optional<OriginPlace> OriginFinder::neighbor(const InstructionIndex& index,
                                                  const HloInstruction& of) const {
  for (bool to_users : {false, true})
    if (Instructions found = nearest(index, of, to_users); !found.empty()) return named(*found[0]);
  return std::nullopt;
}

void OriginFinder::add_merged(const InstructionIndex& index, const HloInstruction& instruction,
                              CollectiveOrigin& origin) const {
  // The get-tuple-elements that replaced the combined collectives carry their names. For an
  // asynchronous collective, they use its done instruction.
  std::size_t parts = 0;
  auto add_parts = [&](const HloInstruction& of) {
    for (const HloInstruction* user : index.users(of))
      if (user->opcode == "get-tuple-element")
        if (auto place = named(*user); place && !is_weak(*place)) {
          ++parts;
          add_once(origin.places, std::move(*place));
        }
  };
  add_parts(instruction);
  for (const HloInstruction* user : index.users(instruction))
    if (user->opcode.ends_with("-done")) add_parts(*user);
  if (parts >= instruction.operands.size()) return;
  for (const HloInstruction* operand : index.operands(instruction)) {
    if (auto place = named(*operand); place && !is_weak(*place))
      add_once(origin.places, std::move(*place));
    else if (Instructions found = nearest(index, *operand, false); !found.empty())
      add_once(origin.places, *named(*found[0]));
  }
}

CollectiveOrigin OriginFinder::find(const InstructionIndex& index,
                                    const HloInstruction& instruction, CollectiveKind kind,
                                    const EnclosingInstruction& enclosing) const {
  CollectiveOrigin origin;
  if (std::vector<std::string> names = names_in_op_name(instruction.metadata.op_name);
      names.size() > 1) {
    for (const std::string& name : names)
      if (auto place = named(instruction.metadata, name); place && !is_weak(*place))
        add_once(origin.places, std::move(*place));
    if (!origin.places.empty()) {
      origin.certainty =
          origin.places.size() > 1 ? OriginCertainty::kMerged : OriginCertainty::kExact;
      return origin;
    }
  }
  std::optional<OriginPlace> own = named(instruction);
  if (own && !is_weak(*own)) add_once(origin.places, *own);
  if (may_be_combined(kind) && instruction.operands.size() > 1) {
    add_merged(index, instruction, origin);
    if (origin.places.size() > 1) {
      origin.certainty = OriginCertainty::kMerged;
      return origin;
    }
  }
  if (own && !is_weak(*own)) {
    origin.certainty = OriginCertainty::kExact;
    return origin;
  }
  origin.certainty = OriginCertainty::kInferred;
  if (!origin.places.empty()) return origin;
  std::optional<OriginPlace> near = neighbor(index, instruction);
  if (!near && enclosing.instruction) {
    near = named(*enclosing.instruction);
    if (!near || is_weak(*near))
      if (auto beside = neighbor(*enclosing.index, *enclosing.instruction)) near = beside;
  }
  if (near) {
    add_once(origin.places, std::move(*near));
    return origin;
  }
  if (own) {
    origin.certainty = OriginCertainty::kExact;
    add_once(origin.places, std::move(*own));
    return origin;
  }
  origin.certainty = OriginCertainty::kUnknown;
  return origin;
}

CollectiveCause OriginFinder::foreign_cause(const HloInstruction& instruction,
                                            const CollectiveOrigin& origin, bool calls_collectives,
                                            const stablehlo::ModuleOpNames& names) {
  for (std::string_view mark : {"is_spmd_generated", "from-cross-replica-sharding"})
    if (instruction.frontend_attribute(mark) == "true") return CollectiveCause::kInserted;
  if (!calls_collectives) return CollectiveCause::kInserted;
  bool certain =
      origin.certainty == OriginCertainty::kExact || origin.certainty == OriginCertainty::kMerged;
  // In text without locations, each op of the program has a line, and the compiler names what it
  // adds after the op that needs it: `dot.2`, or not at all.
  const HloMetadata& metadata = instruction.metadata;
  if (!certain && !names.by_line.empty() && metadata.source_file.empty() &&
      instruction.operands.size() <= 1 && !names_called_collective(metadata.op_name))
    return CollectiveCause::kInserted;
  if (!certain || origin.places.empty()) return CollectiveCause::kUnknown;
  auto called = std::ranges::count_if(origin.places, [&](const OriginPlace& place) {
    return names_called_collective(place.op) || names.collectives.contains(place.op) ||
           names.collectives.contains(place.path);
  });
  if (called == std::ssize(origin.places)) return CollectiveCause::kAsked;
  return called == 0 ? CollectiveCause::kInserted : CollectiveCause::kUnknown;
}

// True if the node is a mark that shards its value over one of these axes.
bool OriginFinder::splits_by(std::uint32_t number, const AxisList& axes) const {
  if (number < graph_->num_leaves() || number - graph_->num_leaves() >= graph_->nodes().size())
    return false;
  const Node* node = graph_->nodes()[number - graph_->num_leaves()];
  std::optional<Sharding> mark = marked_sharding(Value(const_cast<Node*>(node)));
  if (!mark) return false;
  for (std::size_t d = 0; d < mark->rank(); ++d)
    for (const AxisRef& own : mark->axes(d))
      for (const AxisRef& axis : axes)
        if (own.overlaps(axis)) return true;
  return false;
}

CollectiveCause OriginFinder::cause(const CollectiveOrigin& origin, CollectiveKind kind,
                                    const std::optional<AxisList>& axes) const {
  if (!graph_ || origin.places.empty()) return CollectiveCause::kUnknown;
  std::size_t asked = 0, inserted = 0;
  for (const OriginPlace& place : origin.places) {
    if (!place.node) continue;
    bool gathered = kind == CollectiveKind::kAllGather && axes && splits_by(*place.node, *axes);
    // Reductions of partial results belong to the op that produced them; others may be reshards.
    if (!gathered && is_request(place))
      ++asked;
    else if (gathered || is_reduction(kind) || !marked_[*place.node])
      ++inserted;
  }
  // If the instruction names no op, a nearby mark is not evidence.
  bool certain = origin.certainty != OriginCertainty::kInferred;
  if (certain && asked == origin.places.size()) return CollectiveCause::kAsked;
  if (certain && inserted == origin.places.size()) return CollectiveCause::kInserted;
  return CollectiveCause::kUnknown;
}

ProgramPhase ProgramPhases::of_op(std::string_view op_name) const {
  if (!graph_) return phase_of_op(op_name);
  for (const std::string& name : names_in_op_name(op_name))
    if (ProgramPhase phase = graph_->of(node_path_in_op_name(name));
        phase != ProgramPhase::kUnknown)
      return phase;
  return ProgramPhase::kUnknown;
}

}  // namespace meshard
