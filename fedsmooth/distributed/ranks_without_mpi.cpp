// One rank, for builds without MPI.
#include <cstdlib>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/distributed/launch.h"
#include "fedsmooth/distributed/ranks.h"

namespace fedsmooth {

struct Ranks::State {};

Ranks::Ranks() {
  // Each of them would do the whole work and write the same files.
  if (const int count = launched_processes(); count > 1) {
    throw Error(
        "started as one of {} ranks, but this build has no MPI; build it where libopenmpi-dev is "
        "installed, or start it without mpirun",
        count);
  }
}

Ranks::Ranks(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ranks Ranks::alone() { return Ranks(std::make_unique<State>()); }
Ranks::Ranks(Ranks&& other) noexcept = default;
Ranks::~Ranks() = default;

int Ranks::rank() const { return 0; }
int Ranks::size() const { return 1; }
int Ranks::world_rank() const { return 0; }
int Ranks::local_rank() const { return 0; }
int Ranks::cores() const { return available_cores(); }
void Ranks::set_patience(std::chrono::seconds) {}
void Ranks::broadcast(std::string&) {}
void Ranks::add_up(std::vector<long long>&) {}
std::vector<std::string> Ranks::gather(const std::string& mine, bool) { return {mine}; }
void Ranks::send(int, const std::string&) { throw Bug("send: there is one rank"); }
std::string Ranks::receive(int) { throw Bug("receive: there is one rank"); }
std::optional<Ranks::Message> Ranks::poll(int) { return std::nullopt; }
void Ranks::give_up_on(int) { throw Bug("give_up_on: there is one rank"); }
std::chrono::steady_clock::duration Ranks::patience() const { return {}; }
Ranks Ranks::group(int) { return Ranks(std::make_unique<State>()); }
bool Ranks::met() const { return false; }
void Ranks::lose_step() {}
bool Ranks::in_step() const { return true; }
void Ranks::end_all(int status) { std::exit(status); }

}  // namespace fedsmooth
