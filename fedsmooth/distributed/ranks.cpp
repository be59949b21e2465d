#include "fedsmooth/distributed/ranks.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <climits>
#include <numeric>
#include <thread>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/distributed/launch.h"

namespace fedsmooth {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Clock::duration kShortestNap = std::chrono::microseconds(50);
constexpr Clock::duration kLongestNap = std::chrono::milliseconds(1);
constexpr std::chrono::seconds kDefaultPatience(1800);

int count_of(size_t size) {
  check(size <= INT_MAX, "MPI takes no message of {} elements", size);
  return static_cast<int>(size);
}

bool is_done(MPI_Request& request) {
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

// The longer it took already, the longer.
void nap(Clock::duration waited) {
  std::this_thread::sleep_for(std::clamp(waited / 100, kShortestNap, kLongestNap));
}

}  // namespace

struct Ranks::State {
  MPI_Comm comm = MPI_COMM_NULL;  // null if there is one rank
  bool started_mpi = false;
  int rank = 0, size = 1, world_rank = 0, local_rank = 0;
  int cores = available_cores();
  Clock::duration patience = kDefaultPatience;
  bool met = false, in_step = true;

  void find_place() {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
  }

  void find_neighbours() {
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
    int count = 0;
    MPI_Comm_rank(local, &local_rank);
    MPI_Comm_size(local, &count);
    cpu_set_t mine;
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof(mine), &mine);
    std::vector<cpu_set_t> all(count);
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, local);
    const auto sharing = std::count_if(
        all.begin(), all.end(), [&](const cpu_set_t& one) { return CPU_EQUAL(&one, &mine); });
    cores = std::max(1, cores / static_cast<int>(sharing));
    MPI_Comm_free(&local);
  }

  // Until all ranks are here: a rank that waits must not take the core of one that works.
  void wait_for_all(bool patient = false) {
    met = true;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm, &request);
    const auto start = Clock::now();
    while (!is_done(request)) {
      const Clock::duration waited = Clock::now() - start;
      if (!patient && waited > patience) give_up(rank == 0 ? "the other ranks" : "rank 0");
      nap(waited);
    }
  }

  // What all are busy with, without a nap: messages go in many pieces, each of which needs an
  // answer.
  void finish(MPI_Request request) {
    const auto start = Clock::now();
    while (!is_done(request)) {
      if (Clock::now() - start > patience) give_up("the other ranks");
      sched_yield();
    }
  }

  [[noreturn]] void give_up(const std::string& waited_for) const {
    const std::string line = fmt::format(
        "rank {}: nothing heard from {} for {} s (--rank-timeout); all ranks are ended; continue "
        "with --resume\n",
        world_rank, waited_for, std::chrono::duration_cast<std::chrono::seconds>(patience).count());
    std::fputs(line.c_str(), stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }
};

Ranks::Ranks() : state_(std::make_unique<State>()) {
  const int launched = launched_processes();
  if (launched == 0) return;
  int level = 0;
  // Serialized: a rank may talk in one thread while another one works, see hand_out().
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  state_->started_mpi = true;
  check(level >= MPI_THREAD_SERIALIZED, "this MPI cannot be used in a program with threads");
  MPI_Comm_dup(MPI_COMM_WORLD, &state_->comm);
  state_->find_place();
  state_->world_rank = state_->rank;
  if (size() == 1 && launched > 1) {
    MPI_Finalize();
    throw Error(
        "started as one of {} processes, but MPI finds this one only; use mpirun of the MPI that "
        "fedsmooth was built with, or srun --mpi=pmix",
        launched);
  }
  state_->find_neighbours();
}

Ranks::Ranks(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ranks Ranks::alone() { return Ranks(std::make_unique<State>()); }
Ranks::Ranks(Ranks&& other) noexcept = default;

Ranks::~Ranks() {
  if (!state_ || state_->comm == MPI_COMM_NULL || !state_->in_step) return;
  MPI_Comm_free(&state_->comm);
  if (state_->started_mpi) MPI_Finalize();
}

int Ranks::rank() const { return state_->rank; }
int Ranks::size() const { return state_->size; }
int Ranks::world_rank() const { return state_->world_rank; }
int Ranks::local_rank() const { return state_->local_rank; }
int Ranks::cores() const { return state_->cores; }

void Ranks::set_patience(std::chrono::seconds seconds) {
  state_->patience = seconds;
  if (!leads()) state_->patience += state_->patience / 10;
}

void Ranks::broadcast(std::string& bytes) {
  if (size() == 1) return;
  state_->wait_for_all();
  MPI_Request request = MPI_REQUEST_NULL;
  uint64_t length = bytes.size();
  MPI_Ibcast(&length, 1, MPI_UINT64_T, 0, state_->comm, &request);
  state_->finish(request);
  bytes.resize(length);
  MPI_Ibcast(bytes.data(), count_of(length), MPI_BYTE, 0, state_->comm, &request);
  state_->finish(request);
}

void Ranks::add_up(std::vector<long long>& values) {
  if (size() == 1) return;
  state_->wait_for_all();
  MPI_Request request = MPI_REQUEST_NULL;
  const void* mine = leads() ? MPI_IN_PLACE : values.data();
  MPI_Ireduce(mine, values.data(), count_of(values.size()), MPI_LONG_LONG, MPI_SUM, 0, state_->comm,
              &request);
  state_->finish(request);
}

std::vector<std::string> Ranks::gather(const std::string& mine, bool patient) {
  if (size() == 1) return {mine};
  state_->wait_for_all(patient);
  MPI_Request request = MPI_REQUEST_NULL;
  const int length = count_of(mine.size());
  std::vector<int> lengths(size()), starts(size());
  MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, state_->comm, &request);
  state_->finish(request);
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
  std::string all(leads() ? starts.back() + lengths.back() : 0, '\0');
  MPI_Igatherv(mine.data(), length, MPI_BYTE, all.data(), lengths.data(), starts.data(), MPI_BYTE,
               0, state_->comm, &request);
  state_->finish(request);
  std::vector<std::string> parts;
  for (int r = 0; leads() && r < size(); ++r) parts.push_back(all.substr(starts[r], lengths[r]));
  return parts;
}

void Ranks::send(int to, const std::string& bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(bytes.data(), count_of(bytes.size()), MPI_BYTE, to, 0, state_->comm, &request);
  state_->finish(request);
}

std::string Ranks::receive(int from) {
  const auto start = Clock::now();
  while (true) {
    if (std::optional<Message> message = poll(from)) return std::move(message->bytes);
    const Clock::duration waited = Clock::now() - start;
    if (waited > state_->patience) give_up_on(from);
    nap(waited);
  }
}

std::optional<Ranks::Message> Ranks::poll(int from) {
  int found = 0, length = 0;
  MPI_Status status;
  const int source = from == kAnyRank ? MPI_ANY_SOURCE : from;
  MPI_Iprobe(source, 0, state_->comm, &found, &status);
  if (!found) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &length);
  Message message{status.MPI_SOURCE, std::string(length, '\0')};
  MPI_Recv(message.bytes.data(), length, MPI_BYTE, message.from, 0, state_->comm,
           MPI_STATUS_IGNORE);
  return message;
}

Ranks Ranks::group(int count) {
  auto state = std::make_unique<State>();
  *state = {.world_rank = world_rank(),
            .local_rank = local_rank(),
            .cores = cores(),
            .patience = state_->patience};
  if (state_->comm != MPI_COMM_NULL) {
    MPI_Comm_split(state_->comm, rank() * count / size(), rank(), &state->comm);
    state->find_place();
  }
  return Ranks(std::move(state));
}

void Ranks::give_up_on(int rank) { state_->give_up(fmt::format("rank {}", rank)); }
Clock::duration Ranks::patience() const { return state_->patience; }
bool Ranks::met() const { return state_->met; }
void Ranks::lose_step() { state_->in_step = false; }
bool Ranks::in_step() const { return state_->in_step; }

void Ranks::end_all(int status) {
  std::fflush(nullptr);
  if (state_->comm == MPI_COMM_NULL) std::exit(status);
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

}  // namespace fedsmooth
