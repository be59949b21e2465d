#include "fedsmooth/distributed/hand_out.h"

#include <charconv>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "fedsmooth/base/check.h"
#include "fedsmooth/base/error.h"

namespace fedsmooth {
namespace {

using Clock = std::chrono::steady_clock;
using Take = std::function<void(int64_t, const std::string&)>;

constexpr auto kNap = std::chrono::microseconds(500);  // an image takes a thousand times as long
// A rank's messages: its result of the item that it was given, that it stopped, or why it failed.
// The first one is a result of nothing.
constexpr char kResult = 'r', kStopped = 's', kFailed = 'f';
constexpr int64_t kNothing = -1;

int64_t parse_item(const std::string& text) {
  int64_t item = kNothing;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), item);
  check(parsed.ec == std::errc(), "hand_out: no number: {}", text);
  return item;
}

// The items and their results, as both threads of rank 0 see them.
class Items {
 public:
  Items(int64_t first, int64_t count, const Take& take)
      : next_(first), to_take_(first), count_(count), take_(take) {}

  /// The next item, or kNothing.
  int64_t next() {
    const std::lock_guard lock(mutex_);
    return stopped_ || failure_ || next_ == count_ ? kNothing : next_++;
  }

  void put(int64_t item, std::string result) {
    const std::lock_guard lock(mutex_);
    results_[item] = std::move(result);
    try {
      for (; !failure_ && results_.contains(to_take_); results_.erase(to_take_++)) {
        take_(to_take_, results_[to_take_]);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::make_exception_ptr(Error(why));
  }

  /// Once all ranks are done.
  void throw_what_happened() const {
    if (failure_) std::rethrow_exception(failure_);
    if (stopped_) throw Interrupted{"interrupted; continue with --resume"};
  }

 private:
  std::mutex mutex_;
  int64_t next_, to_take_, count_;
  const Take& take_;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::map<int64_t, std::string> results_;  // that wait for earlier ones
};

// What rank 0 knows of another rank.
struct Worker {
  int64_t item = kNothing;
  bool done = false;
  Clock::time_point heard = Clock::now();
};

// Answers the other ranks until each knows that nothing is left.
void serve(Ranks& ranks, Items& items) {
  std::vector<Worker> workers(ranks.size());
  int left = ranks.size() - 1;
  while (left > 0) {
    std::optional<Ranks::Message> message = ranks.poll();
    if (!message) {
      std::this_thread::sleep_for(kNap);
      for (int r = 1; r < ranks.size(); ++r) {
        if (!workers[r].done && Clock::now() - workers[r].heard > ranks.patience()) {
          ranks.give_up_on(r);
        }
      }
      continue;
    }
    Worker& worker = workers[message->from];
    worker.heard = Clock::now();
    if (message->bytes.front() == kStopped) {
      items.stop();
    } else if (message->bytes.front() == kFailed) {
      items.fail(fmt::format("rank {}: {}", message->from, message->bytes.substr(1)));
    } else if (worker.item != kNothing) {
      items.put(worker.item, message->bytes.substr(1));
    }
    worker.item = items.next();
    worker.done = worker.item == kNothing;
    if (worker.done) --left;
    ranks.send(message->from, std::to_string(worker.item));
  }
}

void work_here(Items& items, const Work& work) {
  try {
    for (int64_t item; (item = items.next()) != kNothing;) items.put(item, work(item));
  } catch (const Interrupted&) {
    items.stop();
  }
}

}  // namespace

void hand_out(Ranks& ranks, int64_t first, int64_t count, const Work& work, const Take& take) {
  Items items(first, count, take);
  if (ranks.size() == 1) {
    work_here(items, work);
    return items.throw_what_happened();
  }
  std::thread server([&] { serve(ranks, items); });
  std::exception_ptr thrown;
  try {
    work_here(items, work);
  } catch (...) {
    thrown = std::current_exception();
    items.stop();
  }
  server.join();
  if (thrown) std::rethrow_exception(thrown);
  items.throw_what_happened();
}

void work_on_items(Ranks& ranks, const Work& work) {
  std::string message(1, kResult);
  while (true) {
    ranks.send(0, message);
    const int64_t item = parse_item(ranks.receive(0));
    if (item == kNothing) return;
    try {
      message = kResult + work(item);
    } catch (const Interrupted&) {
      message = kStopped;
    } catch (const Error& error) {
      message = kFailed + std::string(error.what());
    }
  }
}

}  // namespace fedsmooth
