#include "meshard/processes/launch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/socket.h"

namespace meshard {
namespace {

constexpr const char* kSecretVariable = "MESHARD_PROCESS_SECRET";
constexpr const char* kCollectivesVariable = "MESHARD_COLLECTIVES";
constexpr std::size_t kShortestSecret = 16;

/// Variables that say where process 0 is, and who this process is.
struct OwnVariables {
  const char* address;
  const char* rank;
  const char* count;
};
// Those of jax.distributed.initialize() have the same meaning.
constexpr std::array<OwnVariables, 2> kOwnVariables = {{
    {"MESHARD_PROCESS_ADDRESS", "MESHARD_PROCESS_RANK", "MESHARD_PROCESS_COUNT"},
    {"JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES"},
}};

Error launch_error(std::string text) {
  return Error(ErrorCode::kInvalidArgument, "[processes] " + std::move(text));
}

/// An empty variable counts as not set.
std::string value_of(const ReadVariable& variable, const char* name) {
  const char* text = variable(name);
  return text != nullptr ? text : "";
}

Result<std::optional<int>> number_of(const ReadVariable& variable, const char* name) {
  MESHARD_ASSIGN_OR_RETURN(int number, process_number(variable, name));
  return number < 0 ? std::optional<int>() : std::optional<int>(number);
}

Result<Collectives> wanted_collectives(const ProcessesOptions& options,
                                       const ReadVariable& variable) {
  if (options.collectives != Collectives::kAutomatic) return options.collectives;
  std::string text = value_of(variable, kCollectivesVariable);
  if (text.empty()) return Collectives::kAutomatic;
  Result<Collectives> wanted = parse_collectives(text);
  if (wanted.ok()) return wanted;
  return wanted.error().with_note(cat("it is the value of ", kCollectivesVariable));
}

/// Whether process 0 may listen at an address with this secret.
Result<void> check_secret(const Launch& launch, const internal::ProcessAddress& address) {
  if (address.is_unix() || launch.secret.size() >= kShortestSecret) return {};
  return launch_error(cat("process 0 would listen at ", launch.address, " with a secret of ",
                          launch.secret.size(), " characters: ", kSecretVariable,
                          " needs at least ", kShortestSecret,
                          " (openssl rand -hex 32), the same in all processes"));
}

/// Checks a launch whose address, rank and count are set.
Result<Launch> at_address(Launch launch) {
  launch.kind = LaunchKind::kAddress;
  MESHARD_ASSIGN_OR_RETURN(internal::ProcessAddress address,
                           internal::ProcessAddress::parse(launch.address));
  if (launch.count < 1 || launch.rank < 0 || launch.rank >= launch.count)
    return launch_error(cat("process ", launch.rank, " of ", launch.count,
                            " processes: ranks are from 0 to count - 1"));
  if (launch.collectives == Collectives::kMpi)
    return launch_error(cat(kCollectivesVariable, "=mpi, but the processes are started by ",
                            launch.launcher, " (", launch.variables, "), and not by MPI"));
  if (launch.count == 1) {
    launch.kind = LaunchKind::kSingle;
    return launch;
  }
  MESHARD_RETURN_IF_ERROR(check_secret(launch, address));
  return launch;
}

/// What variables of the user say, and what they leave open.
struct OwnWords {
  const OwnVariables* names = nullptr;
  std::string address = {};
  std::optional<int> rank = {}, count = {};
  std::string set = {}, missing = {};  // names

  bool is_complete() const { return missing.empty(); }
};

Result<OwnWords> own_words(const ReadVariable& variable, const OwnVariables& names) {
  OwnWords own{.names = &names, .address = value_of(variable, names.address)};
  MESHARD_ASSIGN_OR_RETURN(own.rank, number_of(variable, names.rank));
  MESHARD_ASSIGN_OR_RETURN(own.count, number_of(variable, names.count));
  for (const char* name : {names.address, names.rank, names.count}) {
    std::string value = value_of(variable, name);
    std::string& list = value.empty() ? own.missing : own.set;
    list += cat(list.empty() ? "" : ", ", name);
    if (!value.empty()) list += cat("=", value);
  }
  return own;
}

/// A number of the user's variables must not differ from the launcher's.
Result<void> check_same(const char* name, const std::optional<int>& own, int said,
                        const LauncherWords& words) {
  if (!own || said < 0 || *own == said) return {};
  return launch_error(cat(name, "=", *own, " contradicts ", words.launcher, " (", words.variables,
                          "); unset it, or set address, rank and count"));
}

/// A launch of which the launcher says a part, and the user's variables the rest.
Result<Launch> composed(Launch launch, const OwnWords& own, const LauncherWords& words) {
  MESHARD_RETURN_IF_ERROR(check_same(own.names->rank, own.rank, words.rank, words));
  MESHARD_RETURN_IF_ERROR(check_same(own.names->count, own.count, words.count, words));
  launch.launcher = words.launcher;
  launch.variables = words.variables + (own.set.empty() ? "" : ", " + own.set);
  launch.family = words.family;
  launch.rank = own.rank.value_or(words.rank);
  launch.local_rank = words.local_rank;
  const int count = own.count.value_or(words.count);
  launch.address = own.address.empty() ? words.address : own.address;
  // Kubernetes says no address. Its pods do not know their own names early.
  launch.everywhere = own.address.empty() || own.names != kOwnVariables.data() ||
                      (!words.by_mpi && words.address.empty());
  const bool by_mpi =
      words.by_mpi && own.address.empty() && launch.collectives != Collectives::kGloo;
  if (by_mpi) {
    launch.kind = LaunchKind::kMpi;
    launch.announced = std::max(words.count, 0);
    launch.variable = words.count_variable;
    launch.count = launch.announced;
    if (launch.announced == 1) launch.kind = LaunchKind::kSingle;
    // Whether the processes could meet at the address without MPI.
    Result<internal::ProcessAddress> place = internal::ProcessAddress::parse(launch.address);
    if (launch.count < 2 || !place.ok() || !check_secret(launch, *place).ok())
      launch.address.clear();
    return launch;
  }
  std::string missing;
  auto lacks = [&](bool is_missing, const char* name) {
    if (is_missing) missing += cat(missing.empty() ? "" : ", ", name);
  };
  const bool is_alone = count == 1;
  lacks(launch.address.empty() && !is_alone, own.names->address);
  lacks(launch.rank < 0, own.names->rank);
  lacks(count < 0, own.names->count);
  if (!missing.empty())
    return launch_error(cat(missing, " must be set, too, because ", words.launcher,
                            " does not say it (", launch.variables, ")"));
  launch.count = count;
  if (is_alone) return launch;
  return at_address(std::move(launch));
}

}  // namespace

Result<Collectives> parse_collectives(std::string_view text) {
  std::string names;
  for (const auto& [value, name] : EnumNames<Collectives>::kNames) {
    if (name == text) return value;
    names += cat(names.empty() ? "" : ", ", name);
  }
  return launch_error(cat("collectives \"", text, "\" are none of ", names));
}

Result<Launch> find_launch(const ProcessesOptions& options, const ReadVariable& variable,
                           unsigned user) {
  Launch launch;
  MESHARD_ASSIGN_OR_RETURN(launch.collectives, wanted_collectives(options, variable));
  if (!options.address.empty()) {
    launch.launcher = "ProcessesOptions";
    launch.variables = cat("address ", options.address);
    launch.address = options.address;
    launch.rank = options.rank;
    launch.count = options.count;
    launch.secret = options.secret;
    return at_address(std::move(launch));
  }
  if (options.rank != -1 || options.count != 0 || !options.secret.empty())
    return launch_error("ProcessesOptions has a rank, a count or a secret, but no address");
  launch.secret = value_of(variable, kSecretVariable);
  MESHARD_ASSIGN_OR_RETURN(Launchers launchers, recognize_launchers(variable, user));
  for (const OwnVariables& names : kOwnVariables) {
    MESHARD_ASSIGN_OR_RETURN(OwnWords own, own_words(variable, names));
    if (own.set.empty()) continue;
    if (!own.is_complete()) {
      if (launchers.chosen) return composed(std::move(launch), own, *launchers.chosen);
      return launch_error(cat(own.missing, " must be set, too, because ", own.set,
                              " is set, and no launcher was recognized"));
    }
    launch.launcher = names.address;
    launch.variables = own.set;
    launch.address = own.address;
    launch.everywhere = &names != kOwnVariables.data();  // as in JAX
    launch.rank = *own.rank;
    launch.count = *own.count;
    return at_address(std::move(launch));
  }
  if (launchers.chosen)
    return composed(std::move(launch), {.names = kOwnVariables.data()}, *launchers.chosen);
  if (!launch.secret.empty())
    return launch_error(
        cat("MESHARD_PROCESS_ADDRESS, MESHARD_PROCESS_RANK, MESHARD_PROCESS_COUNT "
            "must be set, too, because ",
            kSecretVariable, " is set, and no launcher was recognized"));
  return launch;
}

}  // namespace meshard
