// The processes that mpirun (or srun) started together, over MPI. Rank 0 leads: it sends to the
// others and adds up what they did. No rank waits forever: one that hears nothing for as long as
// its patience ends all of them. MPI is seen by ranks.cpp alone; where a build has none,
// ranks_without_mpi.cpp takes its place.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fedsmooth {

class Ranks {
 public:
  /// Meets the others if a launcher started this process; if not, there is one rank and MPI is left
  /// alone. An Error if there are others and the build has no MPI.
  Ranks();
  /// This process by itself, whoever started it.
  static Ranks alone();
  ~Ranks();
  Ranks(Ranks&& other) noexcept;

  int rank() const;
  int size() const;
  bool leads() const { return rank() == 0; }
  /// The rank among all, which is another one than rank() in a group.
  int world_rank() const;
  /// Among the ranks on this machine.
  int local_rank() const;
  /// Cores that this rank may use, divided by the ranks that were given the same ones.
  int cores() const;

  /// Rank 0 gives up after `seconds` without a word, the others a tenth later, so that the user
  /// gets one message.
  void set_patience(std::chrono::seconds seconds);

  /// What rank 0 has, at every rank.
  void broadcast(std::string& bytes);
  /// The sum over all ranks, at rank 0. Elsewhere `values` stay as they are.
  void add_up(std::vector<long long>& values);
  /// What each rank has, at rank 0; nothing elsewhere. `patient`: however long it takes.
  std::vector<std::string> gather(const std::string& mine, bool patient = false);

  struct Message {
    int from = 0;
    std::string bytes;
  };
  static constexpr int kAnyRank = -1;
  void send(int to, const std::string& bytes);
  std::string receive(int from);
  /// A message that is there, if one is. There must be other ranks.
  std::optional<Message> poll(int from = kAnyRank);
  /// Ends all ranks with the message that this one waited for `rank` in vain.
  [[noreturn]] void give_up_on(int rank);
  std::chrono::steady_clock::duration patience() const;

  /// This rank's group, of `count` groups of neighbours.
  Ranks group(int count);

  /// Whether anything was said between the ranks yet.
  bool met() const;

  /// A rank that leaves in the middle of what all do together loses step: the others cannot be told
  /// anything any more but to end.
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
