// The measurements beside other projects: `./dev bench --peers`.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/peer.h"
#include "bench/report.h"

namespace meshard::bench {

/// The peers of one run, and the rows.
class Contest {
 public:
  /// `pythons`: the interpreter of each peer's environment, by the peer's name: jax, torch,
  /// torch_xla; and python, that of our own Python package. `scripts`: the folder of their
  /// programs.
  Contest(std::map<std::string, std::string> pythons, std::string scripts, std::string plugin);

  /// Rows with ours and theirs.
  Report& report() { return report_; }
  /// Whether the peer has an environment.
  bool has(const std::string& peer) const { return pythons_.contains(peer); }
  /// A new process of the peer, which has so many devices. `meshard_torch` is our package in
  /// PyTorch's environment. @pre has(peer); for meshard_torch has("torch") and has("python")
  std::unique_ptr<Peer> start(const std::string& peer, int devices = 8) const;
  /// `JAX 0.10.2 on the same plugin`; starts a process when it is asked first. @pre has(peer)
  const std::string& title(const std::string& peer);
  /// The interpreter of a peer's environment, and the path of a program in the folder of scripts.
  const std::string& python(const std::string& peer) const { return pythons_.at(peer); }
  std::string script(const std::string& name) const { return scripts_ + "/" + name; }
  /// The plugin that ours, and JAX, run on.
  const std::string& plugin() const { return plugin_; }
  /// The folder for the peers' and our optimized programs; empty: they are not kept.
  std::string programs;

  /// Calls f(). If a peer fails in it, prints why `rows` are missing.
  void attempt(const std::string& rows, const std::function<void()>& f);

 private:
  std::map<std::string, std::string> pythons_, titles_;
  std::string scripts_, plugin_;
  Report report_{"theirs"};
};

/// One side of a measurement: runs once, and returns the seconds that count.
using Side = std::function<double()>;
/// The minimum of each side: all run in turns, after one turn to warm up, so that other load on the
/// machine affects all alike.
std::vector<double> fastest_in_turns(int turns, const std::vector<Side>& sides);

/// A row. `allowed`: the goal is at most (for rates: at least) this part of theirs.
struct Figures {
  std::string name, work, unit;
  double ours = 0, theirs = 0;
  bool higher_is_better = false;
  double allowed = 1;
  std::string note = {};
};
void add_figures(Contest& contest, const std::string& peer, const Figures& figures);

void call_contest(Contest& contest);
void transfer_contest(Contest& contest);
void training_contest(Contest& contest);
void layers_contest(Contest& contest);
void start_contest(Contest& contest);
void decode_contest(Contest& contest);
void mesh_contest(Contest& contest);
void layout_contest(Contest& contest);
void record_contest(Contest& contest);
/// meshard.torch beside PyTorch and torch_xla; needs PyTorch and our Python package.
void program_contest(Contest& contest);
/// Our Python package beside JAX; needs both.
void python_contest(Contest& contest);
/// Needs mpirun and libmeshard_mpi.so.
void processes_contest(Contest& contest);

/// A child process of start_contest(): prints a JSON object. Returns the exit status.
int start_contest_child(const std::vector<std::string>& arguments);

/// One of the processes of processes_contest(). Returns the exit status.
int processes_contest_child(const std::vector<std::string>& arguments);

}  // namespace meshard::bench
