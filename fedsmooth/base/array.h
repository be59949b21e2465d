// A dense array of numbers: sizes, type, and a buffer that copies share. The last axis lies
// closest; there are no strides, so that what needs another order makes a copy. Arithmetic is
// written where it is used, over plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace fedsmooth {

using Sizes = std::vector<int64_t>;

/// The product of the sizes.
int64_t count_of(const Sizes& sizes);

class Array {
 public:
  enum class Type { kFloat, kByte, kInteger };  // float, uint8_t, int64_t

  /// Without a buffer; see defined().
  Array() = default;
  /// Zeros.
  explicit Array(Sizes sizes, Type type = Type::kFloat);
  /// All the same value.
  static Array full(Sizes sizes, float value);
  /// A copy of the values, which must be as many as the sizes say.
  static Array of(Sizes sizes, const std::vector<float>& values);
  static Array of(const std::vector<int64_t>& values);

  bool defined() const { return buffer_ != nullptr; }
  Type type() const { return type_; }
  const Sizes& sizes() const { return sizes_; }
  int64_t size(int64_t axis) const { return sizes_.at(axis); }
  int64_t axes() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t count() const { return count_; }
  int64_t byte_count() const;

  /// The values; a Bug if the type is another one.
  const float* floats() const { return static_cast<const float*>(values(Type::kFloat)); }
  float* floats() { return static_cast<float*>(values(Type::kFloat)); }
  const uint8_t* bytes() const { return static_cast<const uint8_t*>(values(Type::kByte)); }
  uint8_t* bytes() { return static_cast<uint8_t*>(values(Type::kByte)); }
  const int64_t* integers() const { return static_cast<const int64_t*>(values(Type::kInteger)); }
  int64_t* integers() { return static_cast<int64_t*>(values(Type::kInteger)); }
  /// Whatever the type.
  const void* data() const { return buffer_.get() + offset_; }
  void* data() { return buffer_.get() + offset_; }

  // What shares the buffer.

  /// Entry `i` of the first axis, without that axis.
  Array operator[](int64_t i) const;
  /// Entries first .. first + count - 1 of the first axis.
  Array part(int64_t first, int64_t count) const;
  /// The same values under other sizes.
  Array with_sizes(Sizes sizes) const;

  // What does not.

  Array clone() const;
  /// Entries of the first axis, in this order.
  Array pick(const std::vector<int64_t>& entries) const;

 private:
  void* values(Type type) const {
    if (type != type_ || !defined()) refuse_type();
    return buffer_.get() + offset_;
  }
  [[noreturn]] static void refuse_type();
  int64_t entry_bytes() const;

  Sizes sizes_;
  Type type_ = Type::kFloat;
  int64_t count_ = 0;
  std::shared_ptr<std::byte[]> buffer_;
  int64_t offset_ = 0;  // bytes
};

/// The same sizes, type and bits.
bool same_bits(const Array& a, const Array& b);

/// Bytes as floats in [0, 1].
Array to_unit_interval(const Array& bytes);

}  // namespace fedsmooth
