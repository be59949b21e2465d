// A dense array of numbers: sizes, a type, and a buffer that copies share. Values are stored in
// row-major order without strides; code that needs another order makes a copy. Arithmetic is
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

/// Copies share the buffer, which lives as long as the last of them; clone() makes one of its own.
/// Threads may read one array at the same time. Writing needs the same care as for a plain buffer.
class Array {
 public:
  enum class Type { kFloat, kByte, kInteger };  // float, uint8_t, int64_t

  /// Makes an array without a buffer: defined() is false.
  Array() = default;
  /// Makes an array of zeros.
  explicit Array(Sizes sizes, Type type = Type::kFloat);
  /// Returns a float array in which every entry is `value`.
  static Array full(Sizes sizes, float value);
  /// Copies the values. Their number must be the product of the sizes, else it is a Bug.
  static Array of(Sizes sizes, const std::vector<float>& values);
  static Array of(const std::vector<int64_t>& values);

  bool defined() const { return buffer_ != nullptr; }
  Type type() const { return type_; }
  const Sizes& sizes() const { return sizes_; }
  int64_t size(int64_t axis) const { return sizes_.at(axis); }
  int64_t axes() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t count() const { return count_; }
  int64_t byte_count() const;

  /// Return a pointer to the values. A Bug if the array has another type or no buffer.
  const float* floats() const { return static_cast<const float*>(values(Type::kFloat)); }
  float* floats() { return static_cast<float*>(values(Type::kFloat)); }
  const uint8_t* bytes() const { return static_cast<const uint8_t*>(values(Type::kByte)); }
  uint8_t* bytes() { return static_cast<uint8_t*>(values(Type::kByte)); }
  const int64_t* integers() const { return static_cast<const int64_t*>(values(Type::kInteger)); }
  int64_t* integers() { return static_cast<int64_t*>(values(Type::kInteger)); }
  /// Return a pointer to the values of any type.
  const void* data() const { return buffer_.get() + offset_; }
  void* data() { return buffer_.get() + offset_; }

  // The results of these share the buffer.

  /// Returns entry `i` of the first axis, without that axis.
  Array operator[](int64_t i) const;
  /// Returns entries first .. first + count - 1 of the first axis.
  Array part(int64_t first, int64_t count) const;
  /// Returns the values under other sizes with the same product.
  Array with_sizes(Sizes sizes) const;

  // The results of these have a buffer of their own.

  Array clone() const;
  /// Returns these entries of the first axis, in the given order.
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

/// Returns whether sizes, type and every bit of the values are equal.
bool same_bits(const Array& a, const Array& b);

/// Converts bytes to floats in [0, 1].
Array to_unit_interval(const Array& bytes);

}  // namespace fedsmooth
