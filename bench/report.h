// The table of the benchmarks.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace meshard::bench {

/// One row of the table: a time or a bandwidth. `ours` and `floor` have the same unit.
struct Row {
  /// `group.case`, e.g. `call.matmul`.
  std::string name = {};
  /// A description of what is measured.
  std::string work = {};
  std::string unit = {};
  double ours = 0;
  /// The best that the machine allows, or another project's, measured in the same run; 0: not
  /// measured.
  double floor = 0;
  std::string floor_name = {};
  /// The goal, as text and as the bound that `ours` must reach.
  std::string goal = {};
  double bound = 0;
  /// True for bandwidths, false for times.
  bool higher_is_better = false;
  /// Further conditions of the goal, such as memory or bytes copied.
  bool also = true;
  std::string note = {};

  double ratio() const { return floor == 0 ? 0 : ours / floor; }
  bool met() const { return also && (higher_is_better ? ours >= bound : ours <= bound); }
  /// True if the goal is missed, but by less than a half: the moment may decide.
  bool nearly_met() const;
  /// The row of two runs: the better value of each side.
  Row best_of(const Row& again) const;
};

/// Prints each row when it is added, unless it is silent, and stores all rows.
class Report {
 public:
  /// `beside` is the title of the column of floors.
  explicit Report(std::string beside = "floor", bool silent = false)
      : beside_(std::move(beside)), silent_(silent) {}
  void add(Row row);
  /// Adds the rows of another process's json(), which has printed them.
  void take(const std::string& json);
  /// Takes the better values of a second run of the same rows.
  void take_again(const std::string& json);
  /// Prints the rows from position `first` on.
  void print(std::size_t first) const;
  const std::vector<Row>& rows() const { return rows_; }
  /// `9 met, 2 missed`.
  std::string summary() const;
  /// All rows as JSON.
  std::string json() const;

 private:
  std::string beside_;
  bool silent_;
  std::vector<Row> rows_;
};

/// A group of rows. `--only NAME` runs one group.
struct Group {
  const char* name;
  const char* what;
  void (*run)(Report&);
  /// False: runs only if it is named, because it takes minutes.
  bool by_default = true;
};

void record_rows(Report& report);
void step_rows(Report& report);
void layers_rows(Report& report);
void call_rows(Report& report);
void single_rows(Report& report);
void decode_rows(Report& report);
void pipeline_rows(Report& report);
void place_rows(Report& report);
void gather_rows(Report& report);
void reshard_rows(Report& report);
void checkpoint_rows(Report& report);
void start_rows(Report& report);
void mesh_rows(Report& report);
void slices_rows(Report& report);
void layout_rows(Report& report);
void topology_rows(Report& report);
void explain_rows(Report& report);
void build_rows(Report& report);

/// A child process of the row `start`: `start_child({"ours", ...})`. Returns the exit status.
int start_child(const std::vector<std::string>& arguments);

}  // namespace meshard::bench
