// Reports of explain(), and the differences between two.
#include "python/bindings/reports/reports.h"

#include "meshard/explain/byte_text.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/explain/report.h"
#include "meshard/report/diff_text.h"
#include "meshard/report/html.h"
#include "meshard/report/json.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/reports/report_fields.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// `path` may be a str or an object with __fspath__.
void write_page(nb::handle path, const std::string& text) {
  nb::object file =
      nb::module_::import_("io").attr("open")(path, "w", nb::arg("encoding") = "utf-8");
  file.attr("write")(text);
  file.attr("close")();
}

// Rows for a table: a dict for each collective.
nb::list collective_table(const ProgramReport& report) {
  nb::list rows;
  for (const CollectiveGroup& group : report.groups()) {
    const Collective& one = group.example;
    nb::dict row;
    row["kind"] = std::string(to_string(one.kind));
    row["axes"] = one.axes ? axes_tuple(*one.axes) : nb::none();
    row["count"] = group.count;
    row["executions"] = one.executions;
    row["bytes"] = group.bytes;
    row["total_bytes"] = group.total_bytes;
    row["from"] = one.origin.to_string();
    row["cause"] = std::string(to_string(one.cause));
    row["tensor"] = one.tensor;
    row["purpose"] = std::string(to_string(one.purpose.kind));
    row["names"] = group.names;
    row["layers"] = group.layers;
    row["phase"] = std::string(to_string(one.purpose.phase));
    rows.append(row);
  }
  return rows;
}

std::string short_text(const ProgramReport& report) {
  return cat("<Report of ", report.name(), " for ", report.parts().target.name, ": ",
             report.logical_collectives().size(), " collectives, ",
             byte_text(report.collective_bytes()), report.fits() ? ">" : ", does not fit>");
}

// The moves that predict() expects of the recorded program, if the report is of one.
std::vector<PredictedMove> predicted_moves(nb::handle report) {
  nb::object program = nb::getattr(report, "_program", nb::none());
  const TracedProgram* traced = nullptr;
  if (!nb::try_cast<const TracedProgram*>(program, traced) || !traced) return {};
  try {
    return predict(traced->program.graph).moves;
  } catch (const Error&) {
    return {};  // there is a report all the same
  }
}

bool is_predicted(const Collective& one, const PredictedMove& move) {
  if (move.kind != one.kind || !one.axes || *one.axes != move.axes) return false;
  for (const OriginPlace& place : one.origin.places)
    if (!place.place.empty() && place.place == move.origin.place) return true;
  return false;
}

// Collectives with the causes of their reshards, or else those of predict().
std::vector<ExplainedCollective> explained_of(nb::handle_t<ProgramReport> self,
                                              const std::vector<Collective>& list) {
  const auto& report = nb::cast<const ProgramReport&>(self);
  std::vector<PredictedMove> moves = predicted_moves(self);
  std::vector<ExplainedCollective> all;
  for (const Collective& one : list) {
    ExplainedCollective made(one);
    for (const Reshard& reshard : report.parts().reshards)
      if (reshard.instruction == one.instruction) made.reason = reshard.cause;
    for (const PredictedMove& move : moves) {
      if (!is_predicted(one, move)) continue;
      if (made.reason.empty()) made.reason = move.cause;
      made.suggestion = move.suggestion;
      break;
    }
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<ExplainedCollective> explained(nb::handle_t<ProgramReport> self) {
  return explained_of(self, nb::cast<const ProgramReport&>(self).collectives());
}

std::vector<ExplainedCollective> explained_logical(nb::handle_t<ProgramReport> self) {
  const auto& logical = nb::cast<const ProgramReport&>(self).logical_collectives();
  std::vector<ExplainedCollective> all = explained_of(self, whole_collectives(logical));
  for (std::size_t i = 0; i < all.size(); ++i) all[i].instructions = logical[i].instructions;
  return all;
}

// The collective instructions of one kind and, if given, over these axes.
std::vector<ExplainedCollective> chosen(nb::handle_t<ProgramReport> self, const std::string& kind,
                                        const std::optional<std::vector<std::string>>& axes) {
  std::vector<ExplainedCollective> found = explained(self);
  std::erase_if(found, [&](const ExplainedCollective& one) {
    if (to_string(one.kind) != kind) return true;
    if (!axes) return false;
    return !one.axes || !axes_tuple(*one.axes).equal(nb::tuple(nb::cast(*axes)));
  });
  return found;
}

void bind_report(nb::module_& module) {
  using Report = ProgramReport;
  nb::class_<Report> type(module, "Report", nb::dynamic_attr(),
                          "What the compiler made of a program. str() shows it.");
  add_fields<Report::Parts>(type, "Parts", "meshes() collectives logical_collectives",
                            [](const Report& r) -> const Report::Parts& { return r.parts(); });
  type.def_prop_ro(
          "mesh_axes",
          [](const Report& r) {
            nb::dict axes;
            if (r.mesh())
              for (const MeshAxis& axis : r.mesh()->axes()) axes[axis.name.c_str()] = axis.size;
            return axes;
          },
          "The sizes of the mesh axes, by name.")
      .def_prop_ro(
          "device_ids",
          [](const Report& r) {
            std::vector<std::int64_t> ids;
            if (r.mesh())
              for (std::int64_t id : r.mesh()->device_ids()) ids.push_back(id);
            return ids;
          },
          "The device at each position of the mesh, row-major.")
      .def_prop_ro("collectives", explained, "All collective instructions, in the module's order.")
      .def_prop_ro(
          "logical_collectives", explained_logical,
          "The collectives as the program has them: where a compiler writes one as several "
          "instructions, they are one. Expectations and differences count these.")
      .def("collectives_of", chosen, nb::arg("kind"), nb::arg("axes") = nb::none(),
           "The collective instructions of one kind, and over exactly these axes if given.")
      .def_prop_ro("groups", &Report::groups,
                   "The logical collectives, grouped if they differ only in size and names.")
      .def_prop_ro("collective_bytes", &Report::collective_bytes,
                   "Bytes of all collectives over all executions, on one device.")
      .def(
          "table", collective_table,
          "A dict for each group of collectives: rows for a table, as pandas.DataFrame takes them.")
      .def(
          "to_string",
          [](const Report& r, std::size_t lines, bool picture, bool matrix) {
            return r.to_string(
                {.mesh_picture = picture, .argument_matrix = matrix, .most_lines = lines});
          },
          nb::arg("most_lines") = ExplainOptions().most_lines, nb::arg("mesh_picture") = false,
          nb::arg("argument_matrix") = false,
          "The report as text. `most_lines` limits each section; 0: all. `mesh_picture` draws the "
          "mesh; `argument_matrix` adds the part of each argument that each device receives.")
      .def(
          "argument_matrix",
          [](const Report& r, std::size_t most) { return argument_matrix(r, most); },
          nb::arg("most_devices") = 64,
          "The part of each argument that each device receives, as a text table.")
      .def(
          "to_json", [](const Report& r, std::size_t indent) { return to_json(r, indent); },
          nb::arg("indent") = 0, "The whole report, as docs/report-schema.json specifies it.")
      .def(
          "to_dict", [](const Report& r) { return json_object(to_json(r)); },
          "The same as dicts and lists.")
      .def(
          "to_html", [](const Report& r) { return to_html(r); },
          "A self-contained page, which makes no requests.")
      .def(
          "save_html", [](const Report& r, nb::handle path) { write_page(path, to_html(r)); },
          nb::arg("path"), "Writes the page to a file.")
      .def(
          "save_json",
          [](const Report& r, nb::handle path) { write_page(path, to_json(r, 1) + "\n"); },
          nb::arg("path"), "Writes the JSON to a file.")
      .def(
          "diff", [](const Report& r, const Report& other) { return diff(r, other); },
          nb::arg("after"), "What changed from this report to another.")
      .def("__str__", [](const Report& r) { return r.to_string(); })
      .def("__repr__", short_text)
      .def("_repr_html_", [](const Report& r) { return iframe_of(to_html(r), 700); });
}

void bind_diff(nb::module_& module) {
  bind_value<CollectiveChange::Side>(module, "CollectiveCount", {}, "Side")
      .def("__repr__", [](const CollectiveChange::Side& side) {
        return cat("<CollectiveCount: ", side.count, ", ", side.bytes, " bytes>");
      });
  bind_value<CollectiveChange>(module, "CollectiveChange")
      .def_prop_ro("changed", &CollectiveChange::changed);
  bind_value<AmountChange>(module, "AmountChange")
      .def_prop_ro("changed", &AmountChange::changed)
      .def("__repr__", [](const AmountChange& c) {
        return cat("<AmountChange: ", c.part, " ", c.before, " to ", c.after, ">");
      });
  bind_value<PlacementChange>(module, "PlacementChange");
  nb::class_<ReportDiff> changes(module, "ReportDiff", comment_of("ReportDiff"));
  add_fields<ReportDiff>(changes, "ReportDiff", "before after reshards buffers");
  changes.def_prop_ro("same", &ReportDiff::same, comment_of("ReportDiff.same"))
      .def("to_string", &ReportDiff::to_string, nb::arg("most_lines") = 12,
           "The text, with at most this many lines in each section.")
      .def(
          "to_json", [](const ReportDiff& d) { return to_json(d); }, "All differences as JSON.")
      .def(
          "to_dict", [](const ReportDiff& d) { return json_object(to_json(d)); },
          "The same as dicts and lists.")
      .def(
          "to_html", [](const ReportDiff& d) { return to_html(d); },
          "A self-contained page, which makes no requests.")
      .def(
          "over_limits",
          [](const ReportDiff& d, const std::string& limits) {
            return over_limits(d, parse_diff_limits(limits).value());
          },
          nb::arg("limits"),
          "What is over the limits `collectives; bytes 5%; memory 5%; time 5%; shardings`, a text "
          "for each; empty if nothing is.")
      .def(
          "to_markdown",
          [](const ReportDiff& d, const std::string& limits) {
            return to_markdown(d,
                               {.over_limits = over_limits(d, parse_diff_limits(limits).value())});
          },
          nb::arg("limits") = "",
          "A page for a pull request on GitHub. What is over the limits is listed first.")
      .def(
          "save_html", [](const ReportDiff& d, nb::handle path) { write_page(path, to_html(d)); },
          nb::arg("path"), "Writes a page to a file.")
      .def("__str__", [](const ReportDiff& d) { return d.to_string(); })
      .def("__repr__",
           [](const ReportDiff& d) {
             return cat("<ReportDiff: ", d.before.program, " and ", d.after.program,
                        d.same() ? ", the same>" : ", different>");
           })
      .def("_repr_html_", [](const ReportDiff& d) { return iframe_of(to_html(d), 500); });
}

}  // namespace

nb::object json_object(const std::string& text) {
  return nb::module_::import_("json").attr("loads")(text);
}

std::string iframe_of(const std::string& page, int height) {
  std::string escaped;
  escaped.reserve(page.size() + page.size() / 8);
  for (char c : page) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return cat("<iframe sandbox=\"allow-scripts\" style=\"width:100%;height:", height,
             "px;border:1px solid #ccc\" srcdoc=\"", escaped, "\"></iframe>");
}

void bind_reports(nb::module_& module) {
  bind_report_values(module);
  bind_report(module);
  bind_diff(module);
  bind_targets(module);
  bind_explain(module);
  bind_expectations(module);
  bind_predictions(module);
}

}  // namespace meshard::python
