// The processes that mpirun or srun started together, over MPI. Rank 0 leads: it sends to the
// others and adds up their results. No rank waits forever: one that receives nothing for the time
// set by set_patience() ends all of them. Only ranks.cpp includes MPI; builds without MPI compile
// ranks_without_mpi.cpp in its place.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedsmooth {

class Ranks {
 public:
  /// Joins the other processes if a launcher started this one; otherwise there is one rank and MPI
  /// is not initialised. Throws an Error if there are other processes and the build has no MPI.
  Ranks();
  /// Returns this process as the only rank, even if a launcher started others.
  static Ranks alone();
  ~Ranks();
  Ranks(Ranks&& other) noexcept;

  int rank() const;
  int size() const;
  bool leads() const { return rank() == 0; }
  /// Returns the rank among all processes; in a group it differs from rank().
  int world_rank() const;
  /// Returns the number of this rank among the ranks on this machine.
  int local_rank() const;
  /// Returns the cores that this rank may use, divided by the number of ranks that share them.
  int cores() const;

  /// Sets after how many seconds without a message rank 0 gives up. The others wait a tenth longer,
  /// so that the user gets one message.
  void set_patience(std::chrono::seconds seconds);

  /// Copies the bytes of rank 0 to every rank. All ranks must call it.
  void broadcast(std::string& bytes);
  /// Replaces `values` at rank 0 by the sums over all ranks; leaves them unchanged elsewhere. All
  /// ranks must call it.
  void add_up(std::vector<long long>& values);
  /// Returns at rank 0 what each rank passed, nothing elsewhere. All ranks must call it. `patient`:
  /// waits without a limit of time.
  std::vector<std::string> gather(const std::string& mine, bool patient = false);

  struct Message {
    int from = 0;
    std::string bytes;
  };
  static constexpr int kAnyRank = -1;
  void send(int to, const std::string& bytes);
  std::string receive(int from);
  /// Returns a message that has arrived, or nothing. There must be other ranks.
  std::optional<Message> poll(int from = kAnyRank);
  /// Ends all ranks, with a message that this one waited for `rank` in vain.
  [[noreturn]] void give_up_on(int rank);
  std::chrono::steady_clock::duration patience() const;

  /// Divides the ranks into `count` groups of neighbours and returns the group of this one. All
  /// ranks must call it.
  Ranks group(int count);

  /// Returns whether the ranks have exchanged any message yet.
  bool met() const;

  /// Records that this rank left in the middle of an operation of all ranks. From then on the
  /// others can only be ended.
  void lose_step();
  bool in_step() const;

  /// Ends all ranks.
  [[noreturn]] void end_all(int status);

 private:
  struct State;
  explicit Ranks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fedsmooth
