#include "fedsmooth/base/array.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "fedsmooth/base/check.h"

namespace fedsmooth {
namespace {

constexpr std::align_val_t kAlignment{64};  // of a cache line, and of the widest vectors

int64_t bytes_of(Array::Type type) {
  switch (type) {
    case Array::Type::kFloat:
      return sizeof(float);
    case Array::Type::kByte:
      return sizeof(uint8_t);
    case Array::Type::kInteger:
      return sizeof(int64_t);
  }
  throw Bug("Array: unknown type");
}

std::shared_ptr<std::byte[]> allocate(int64_t bytes) {
  const size_t size = std::max<int64_t>(bytes, 1);
  auto* buffer = static_cast<std::byte*>(::operator new(size, kAlignment));
  std::memset(buffer, 0, size);
  return {buffer, [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

}  // namespace

int64_t count_of(const Sizes& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

Array::Array(Sizes sizes, Type type)
    : sizes_(std::move(sizes)),
      type_(type),
      count_(count_of(sizes_)),
      buffer_(allocate(count_ * bytes_of(type))) {}

Array Array::full(Sizes sizes, float value) {
  Array made(std::move(sizes));
  std::fill_n(made.floats(), made.count(), value);
  return made;
}

Array Array::of(Sizes sizes, const std::vector<float>& values) {
  Array made(std::move(sizes));
  check(made.count() == std::ssize(values), "Array: {} values for sizes [{}]", values.size(),
        fmt::join(made.sizes(), ", "));
  std::copy(values.begin(), values.end(), made.floats());
  return made;
}

Array Array::of(const std::vector<int64_t>& values) {
  Array made({std::ssize(values)}, Type::kInteger);
  std::copy(values.begin(), values.end(), made.integers());
  return made;
}

int64_t Array::byte_count() const { return count_ * bytes_of(type_); }

void Array::refuse_type() { throw Bug("Array: asked for another type than it has"); }

int64_t Array::entry_bytes() const {
  check(!sizes_.empty(), "Array: a single number has no entries");
  return count_of({sizes_.begin() + 1, sizes_.end()}) * bytes_of(type_);
}

Array Array::operator[](int64_t i) const {
  Array row = part(i, 1);
  row.sizes_.erase(row.sizes_.begin());
  return row;
}

Array Array::part(int64_t first, int64_t count) const {
  check(!sizes_.empty() && first >= 0 && count >= 0 && first + count <= sizes_[0],
        "Array: entries {} to {} of [{}]", first, first + count, fmt::join(sizes_, ", "));
  Array some = *this;
  some.offset_ += first * entry_bytes();
  some.sizes_[0] = count;
  some.count_ = count_of(some.sizes_);
  return some;
}

Array Array::with_sizes(Sizes sizes) const {
  check(count_of(sizes) == count_, "Array: [{}] values as [{}]", fmt::join(sizes_, ", "),
        fmt::join(sizes, ", "));
  Array same = *this;
  same.sizes_ = std::move(sizes);
  return same;
}

Array Array::clone() const {
  Array copy(sizes_, type_);
  std::memcpy(copy.data(), data(), byte_count());
  return copy;
}

Array Array::pick(const std::vector<int64_t>& entries) const {
  Sizes sizes = sizes_;
  const int64_t bytes = entry_bytes();
  sizes[0] = std::ssize(entries);
  Array picked(sizes, type_);
  auto* to = static_cast<std::byte*>(picked.data());
  for (const int64_t entry : entries) {
    check(0 <= entry && entry < sizes_[0], "Array: entry {} of {}", entry, sizes_[0]);
    std::memcpy(to, static_cast<const std::byte*>(data()) + entry * bytes, bytes);
    to += bytes;
  }
  return picked;
}

bool same_bits(const Array& a, const Array& b) {
  return a.type() == b.type() && a.sizes() == b.sizes() && a.defined() == b.defined() &&
         (!a.defined() || std::memcmp(a.data(), b.data(), a.byte_count()) == 0);
}

Array to_unit_interval(const Array& bytes) {
  Array floats(bytes.sizes());
  const uint8_t* from = bytes.bytes();
  float* to = floats.floats();
  for (int64_t i = 0; i < bytes.count(); ++i) to[i] = static_cast<float>(from[i]) / 255;
  return floats;
}

}  // namespace fedsmooth
