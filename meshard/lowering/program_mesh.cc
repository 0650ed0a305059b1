#include "meshard/lowering/program_mesh.h"

#include <algorithm>
#include <iterator>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/imported_call.h"
#include "meshard/mesh/device_type.h"
#include "meshard/stablehlo/shardy_text.h"

namespace meshard {
namespace {

std::string described(const Mesh& mesh, SourceLocation where) {
  return cat(mesh, mesh.is_root() ? std::string(", a root,") : cat(", of root ", mesh.root(), ","),
             " is used at ", where);
}

using Cuts = std::set<std::int64_t>;  // sizes of runs of devices

// The sizes of the runs of devices over which the axes repeat: for a 2x4 mesh, 1, 4 and 8.
Cuts cuts_of(const Mesh& mesh) {
  Cuts cuts{1};
  std::int64_t size = 1;
  for (std::size_t i = mesh.rank(); i-- > 0;) cuts.insert(size *= mesh.axes()[i].size);
  return cuts;
}

Cuts merged(Cuts cuts, const Cuts& others) {
  cuts.insert(others.begin(), others.end());
  return cuts;
}

// Where an axis or a sub-axis begins and ends.
Cuts cuts_of(const Mesh& mesh, const AxisRef& axis) {
  std::int64_t size = mesh.axis_size(axis), run = 1;
  for (std::size_t i = mesh.axis_index(axis.name) + 1; i < mesh.rank(); ++i)
    run *= mesh.axes()[i].size;
  if (!axis.is_whole()) run *= mesh.axis_size(axis.name) / (axis.pre_size * size);
  return {run, run * size};
}

bool divide_one_another(const Cuts& cuts) {
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
    if (*std::next(cut) % *cut != 0) return false;
  return true;
}

// The mesh with axes d0, d1, ... whose boundaries are these cuts.
Mesh mesh_with_cuts(const Cuts& cuts) {
  std::vector<MeshAxis> axes;
  for (auto cut = cuts.rbegin(); std::next(cut) != cuts.rend(); ++cut)
    axes.push_back({cat("d", axes.size()), *cut / *std::next(cut)});
  return Mesh(std::move(axes));
}

}  // namespace

Mesh printed_mesh(const Mesh& mesh) { return mesh.rows() > 1 ? mesh.base() : mesh; }

ProgramMeshes::ProgramMeshes(const Graph& graph, bool calls_host) {
  collect(graph);
  if (calls_host && !meshes_.empty()) meshes_.front().manual = true;
  find_first_cuts();
}

void ProgramMeshes::collect(const Graph& graph) {
  for (const Value& leaf : graph.parameters())
    if (const Sharding* sharding = leaf_sharding(leaf)) add(*sharding, leaf->where());
  for (const Value& leaf : graph.captured())
    if (const Sharding* sharding = leaf_sharding(leaf)) add(*sharding, leaf->where());
  collect_nodes(graph);
}

// For a body, only the meshes that it names: its arguments are operands of the node.
void ProgramMeshes::collect_nodes(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    if (node->attributes() && node->attributes()->type() == typeid(ShardingMark))
      add(*node->attributes_as<ShardingMark>().sharding, node->where());
    if (node->annotations() && node->annotations()->manual) {
      const Mesh& mesh = node->annotations()->manual->mesh;
      add(mesh, node->where());
      for (Named& known : meshes_) known.manual = known.manual || known.mesh == mesh;
    }
    if (const ImportedBody* called = imported_body(*node))
      for (const auto& [name, mesh] : called->meshes) {
        add(mesh, node->where());
        for (Named& known : meshes_)
          known.manual = known.manual || (called->has_device_order && known.mesh == mesh);
      }
    for (const Body& body : bodies_of(*node)) collect_nodes(body.graph());
  }
}

void ProgramMeshes::add(const Sharding& sharding, SourceLocation where) {
  const Mesh& mesh = sharding.mesh();
  add(mesh, where);
  if (mesh.rows() > 1) return;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    for (const AxisRef& axis : sharding.axes(d)) {
      if (axis.is_whole()) continue;
      for (Named& known : meshes_)
        if (known.mesh == mesh) known.parts.merge(cuts_of(mesh, axis));
    }
}

void ProgramMeshes::add(const Mesh& mesh, SourceLocation where) {
  // Nearly always the same mesh as in the last call.
  if (!meshes_.empty() && meshes_.back().mesh.is_same_object(mesh)) return;
  if (!numbering_) {
    numbering_ = mesh;
    first_ = where;
  } else if (!numbering_->same_devices(mesh)) {
    throw two_device_sets("lowering", *numbering_, first_, mesh, where, where);
  }
  for (const Named& known : meshes_)
    if (known.mesh == mesh) return;
  std::string name = meshes_.empty() ? std::string("mesh") : cat("mesh_", meshes_.size());
  std::string axes = shardy_text(mesh);
  Named added{mesh, name, name, *numbering_};
  if (shardy_text(mesh, *numbering_) != axes) {
    added.inside = cat(name, "_inside");
    added.numbering = printed_mesh(mesh);
    // Equal axes share one name, because the compiler treats meshes with different names as
    // different.
    for (const Named& known : meshes_)
      if (shardy_text(known.mesh) == axes) added.inside = known.inside;
  }
  meshes_.push_back(std::move(added));
}

Error two_device_sets(std::string_view op, const Mesh& first, SourceLocation first_where,
                      const Mesh& second, SourceLocation second_where, SourceLocation where) {
  return Error(ErrorCode::kInvalidArgument,
               same_platform(first, second)
                   ? cat("[", op, "] one program cannot run on two different sets of devices")
                   : cat("[", op, "] one program cannot run on two platforms, ",
                         platform_name(first), " and ", platform_name(second)),
               where)
      .with_note(described(first, first_where))
      .with_note(described(second, second_where))
      .with_note("transfer() moves a value to the devices of another mesh");
}

std::vector<Mesh> ProgramMeshes::all() const {
  std::vector<Mesh> meshes;
  for (const Named& known : meshes_) meshes.push_back(known.mesh);
  return meshes;
}

const ProgramMeshes::Named& ProgramMeshes::named(const Mesh& mesh) const {
  for (const Named& known : meshes_)
    if (known.mesh == mesh) return known;
  throw InternalError("[lowering] a sharding over a mesh that was not collected");
}

std::string ProgramMeshes::sharding_text(const Sharding& sharding) const {
  if (!numbering_ || numbering_->size() == 1) return {};
  std::string text = shardy_text(sharding, named(sharding.mesh()).inside);
  return text.substr(text.find('<'));
}

std::string ProgramMeshes::shardings_text(const std::vector<Sharding>& shardings) const {
  std::vector<std::string> texts;
  for (const Sharding& sharding : shardings) texts.push_back(sharding_text(sharding));
  return cat("#sdy.sharding_per_value<[", join(texts, ", "), "]>");
}

std::string ProgramMeshes::border_text(const Sharding& sharding) const {
  if (!numbering_ || numbering_->size() == 1) return {};
  // A fully replicated value has no device order.
  const Named& mesh = named(sharding.mesh());
  std::string text =
      shardy_text(sharding, sharding.is_fully_replicated() ? mesh.inside : mesh.name);
  return text.substr(text.find('<'));
}

const std::string& ProgramMeshes::name_inside(const Mesh& mesh) const { return named(mesh).inside; }

bool ProgramMeshes::has_common_order(const Mesh& mesh) const {
  return named(mesh).name == named(mesh).inside;
}

const Mesh& ProgramMeshes::numbering_inside(const Mesh& mesh) const {
  return named(mesh).numbering;
}

bool ProgramMeshes::is_split_by_sub_axis(const Sharding& sharding, std::size_t d) const {
  const Named& known = named(sharding.mesh());
  // The compiler keeps a mesh in another order of devices as it is.
  bool is_rewritten = known.name == known.inside && sharding.mesh().rows() == 1;
  const Mesh& mesh = sharding.mesh();
  return std::any_of(sharding.axes(d).begin(), sharding.axes(d).end(), [&](const AxisRef& axis) {
    if (!axis.is_whole()) return true;
    return is_rewritten && merged(first_cuts_, cuts_of(mesh, axis)) != first_cuts_;
  });
}

bool ProgramMeshes::can_express(const Sharding& sharding) const {
  const Mesh& mesh = sharding.mesh();
  if (mesh.rows() > 1) return true;  // printed as its base
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    for (const AxisRef& axis : sharding.axes(d))
      if (!axis.is_whole() && !divide_one_another(merged(first_cuts_, cuts_of(mesh, axis))))
        return false;
  return true;
}

bool ProgramMeshes::has_sub_axis(const Sharding& sharding) const {
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    if (is_split_by_sub_axis(sharding, d)) return true;
  return false;
}

void ProgramMeshes::find_first_cuts() {
  if (meshes_.empty()) return;
  Cuts first = cuts_of(printed_mesh(meshes_.front().mesh));
  // True for meshes whose cuts must be axis boundaries of the first mesh: those with manual axes,
  // or with sub-axes that its axes do not divide into.
  auto leads = [&](const Named& known) {
    return known.manual || !divide_one_another(merged(first, known.parts));
  };
  first_cuts_ = first;
  if (std::none_of(meshes_.begin(), meshes_.end(), leads)) return;
  // The compiler leaves a mesh unchanged if its cuts fit no other mesh (2x3 beside 3x2).
  Cuts common{1};
  for (bool leading : {true, false})
    for (const Named& known : meshes_) {
      if (leads(known) != leading) continue;
      Cuts both = merged(merged(cuts_of(printed_mesh(known.mesh)), known.parts), common);
      if (divide_one_another(both)) common = std::move(both);
    }
  first_cuts_ = std::move(common);
}

std::vector<std::pair<std::string, std::string>> ProgramMeshes::definitions() const {
  std::vector<std::pair<std::string, std::string>> texts;
  if (!numbering_ || numbering_->size() == 1) return texts;
  if (first_cuts_ != cuts_of(printed_mesh(meshes_.front().mesh)))
    texts.emplace_back("common_axes", shardy_text(mesh_with_cuts(first_cuts_)));
  for (const Named& known : meshes_) {
    texts.emplace_back(known.name, shardy_text(known.mesh, *numbering_));
    if (known.inside == cat(known.name, "_inside"))
      texts.emplace_back(known.inside, shardy_text(known.mesh));
  }
  return texts;
}

}  // namespace meshard
