// Votes of the base classifier under noise, and the seam behind which they are counted: serially,
// in threads, on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedsmooth/base/classifier.h"
#include "fedsmooth/base/error.h"
#include "fedsmooth/base/parallel.h"
#include "fedsmooth/base/stop.h"
#include "fedsmooth/smoothing/group_votes.h"
#include "fedsmooth/smoothing/noise_law.h"

namespace fedsmooth {

class Sampler;

/// The base classifier f: a network at one fixed batch shape, with functions that make its
/// evaluators. Libraries round differently at different batch sizes, so f is a function only if
/// every call has the same shape; short batches are padded.
struct BaseClassifier {
  /// Makes a classifier for one thread (it may own scratch memory).
  std::function<Classifier()> make;
  int64_t classes = 0;
  int64_t batch = 0;
  /// Device, precision, batch, vector instructions and library: certificates that differ in it are
  /// about different classifiers.
  std::string description;
  /// Makes a sampler of the engine's own that draws `law`, or throws an Error that names the law.
  /// `stopped` is called before each batch. Empty: CPU cores count the votes under any law that can
  /// be drawn. Callers use make_sampler() instead.
  std::function<std::unique_ptr<Sampler>(const NoiseLaw& law, Stop stopped)> sampler = {};
  /// Above 0: f is the majority of this number of networks, see group_classifier(). The logits of
  /// an image are then those of all networks, [groups * classes], one network after another.
  int64_t groups = 0;
};

/// Asks for the votes f(x + sigma e) of n samples e of `stream`, from number `first` on. `x` is an
/// image [C, H, W].
struct VoteRequest {
  Array x;
  double sigma = 0;
  int64_t n = 0;
  Stream stream;
  int64_t first = 0;
};

/// The result of check_is_function(): its fixed inputs [batch, C, H, W], and f's logits for them.
struct FunctionCheck {
  Array inputs, logits;
  std::string fingerprint;  // SHA-256 of the logits
};

/// Thrown if f's answers changed while it was used. Certificates from these votes are void.
struct ClassifierChanged : Error {
  using Error::Error;
};

/// Counts votes of one base classifier under one noise law, which must outlive the sampler. One
/// thread at a time may use it.
class Sampler {
 public:
  Sampler(const BaseClassifier& f, const NoiseLaw& law);
  virtual ~Sampler() = default;

  /// Returns the number of votes for each class.
  virtual Votes count(const VoteRequest& request) = 0;
  /// Returns the votes of each request.
  virtual std::vector<Votes> count_all(const std::vector<VoteRequest>& requests);
  /// Returns the votes of each request, with the gaps of one class per request. Throws an Error
  /// unless f is the majority of several groups.
  virtual std::vector<VotesAndGaps> count_gaps(const std::vector<VoteRequest>& requests,
                                               const std::vector<int64_t>& classes);
  /// Returns how many requests for n votes it handles best at once.
  virtual int64_t requests_at_once(int64_t /*n*/) const { return 1; }
  /// Returns how many images it handles best at once when votes are requested in many small steps.
  virtual int64_t images_at_once() const { return 16; }

  /// Throws an Error unless f is a function of single images of `shape` [C, H, W], see
  /// check_is_function(); certify() and predict() ask for it before their first votes. Returns f's
  /// fingerprint. A second call for the same shape costs nothing.
  const std::string& check(const Sizes& shape);
  /// Evaluates the inputs of the last check() again. Throws ClassifierChanged if a bit of the
  /// logits differs; a Bug if there was no check().
  void probe();
  /// Returns the number of copies in a batch; a probe evaluates as many.
  int64_t batch() const { return batch_; }
  /// Returns the number of networks whose majority f is; 0: f is one network.
  int64_t groups() const { return groups_; }
  const NoiseLaw& law() const { return law_; }
  const std::string& description() const { return description_; }
  int64_t classes() const { return classes_; }

 protected:
  /// Returns the logits of one batch, in the CPU's memory, by the code that counts the votes.
  virtual Array evaluate(const Array& images) = 0;
  /// Evaluates the inputs of check() again. A sampler may keep them on its device.
  virtual Array evaluate_again(const FunctionCheck& check) { return evaluate(check.inputs); }

  /// Returns an empty tally for each request, with gaps of the classes in `gaps_of` unless that is
  /// empty.
  std::vector<VotesAndGaps> begin_tallies(size_t requests,
                                          const std::vector<int64_t>& gaps_of) const;

 private:
  int64_t classes_;
  int64_t batch_;
  int64_t groups_;
  int64_t logits_;  // of an image
  std::string description_;
  const NoiseLaw& law_;
  std::optional<FunctionCheck> check_;
};

/// Draws the copies of a law, prepared for one sigma at a time.
class LawDraws {
 public:
  /// Throws an Error if the law cannot be drawn. `threads` cores draw large batches, with the same
  /// bits as one.
  explicit LawDraws(const NoiseLaw& law, int threads = 1);

  NoiseSource at(double sigma);

 private:
  const NoiseLaw& law_;
  std::shared_ptr<Workers> workers_;  // null: the calling thread draws
  double sigma_ = 0;
  NoiseSource source_;  // for sigma_
};

/// Evaluates one batch after another in the calling thread. Tests compare faster samplers with it.
class SerialSampler : public Sampler {
 public:
  /// `threads` cores draw the noise; the network runs in the calling thread.
  SerialSampler(const BaseClassifier& f, const NoiseLaw& law, int threads = 1);
  Votes count(const VoteRequest& request) override;
  std::vector<VotesAndGaps> count_gaps(const std::vector<VoteRequest>& requests,
                                       const std::vector<int64_t>& classes) override;

 protected:
  Array evaluate(const Array& images) override;

 private:
  void count_into(VotesAndGaps& tally, const VoteRequest& request);

  Classifier classifier_;
  LawDraws draws_;
  Array noisy_;
};

/// The copies that requests ask for, as one list. Its batches may hold copies of several requests,
/// which is sound as a copy's logits depend on nothing else (see check_is_function()).
class CopyList {
 public:
  /// The requests must outlive it.
  CopyList(const std::vector<VoteRequest>& requests, LawDraws& draws);

  int64_t total() const { return first_.back(); }

  /// Adds the votes of the copies from `begin` on, one batch, to the tallies of their requests.
  /// `groups` is that of the base classifier. `noisy` is scratch, [batch, C, H, W]. All samplers on
  /// the CPU are loops over this.
  void add_votes(const Classifier& f, int64_t groups, int64_t begin, Array& noisy,
                 std::vector<VotesAndGaps>& tallies) const;

 private:
  // Copies of one request in a batch.
  struct Piece {
    size_t request;
    int64_t sample, row, count;
  };
  std::vector<Piece> pieces(int64_t begin, int64_t batch) const;

  const std::vector<VoteRequest>& requests_;
  std::vector<NoiseSource> noise_;  // of each request
  std::vector<int64_t> first_;      // index of each request's first copy, and the end
};

/// Thrown by check_is_function() if logits depend on an image's position in the batch. Another
/// batch size may help.
struct DependsOnPosition : Error {
  using Error::Error;
};

/// Throws an Error unless f gives the same bits for the same input again, at another position and
/// among other neighbours. `shape` is [C, H, W]. The fingerprint distinguishes classifiers that
/// differ in weights, normalisation or arithmetic. A Sampler does this by itself; see
/// Sampler::check().
FunctionCheck check_is_function(const BaseClassifier& f, const Sizes& shape);

}  // namespace fedsmooth
