#include "fedsmooth/data/npz.h"

#include <gtest/gtest.h>

#include "fedsmooth/data/zip.h"
#include "tests/data/archives.h"
#include "tests/refusal.h"

namespace fedsmooth {
namespace {

// numpy.savez_compressed(file, y_train=numpy.array([0, 1])), by NumPy 2: sizes of the member's own
// header are in a zip64 field.
constexpr const char* kWrittenByNumpy =
    "504b03042d0000000800000021007e6afbc9ffffffffffffffff0b001400795f747261696e2e6e7079010010009000"
    "00000000000049000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f5452"
    "9498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e06286084d200504b01022d032d"
    "0000000800000021007e6afbc949000000900000000b0000000000000000000000800100000000795f747261696e2e"
    "6e7079504b0506000000000100010039000000860000000000";

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(NpzTest, ReadsWhatNumpyWrote) {
  const NpyArray array = read_npz_member(from_hex(kWrittenByNumpy), "y_train", "f.npz");
  EXPECT_EQ(array.type, "<i8");
  EXPECT_EQ(array.sizes, (Sizes{2}));
  EXPECT_EQ(to_integers(array, "y"), (std::vector<int64_t>{0, 1}));
}

TEST(NpzTest, ReadsStoredAndDeflatedMembers) {
  for (const bool deflated : {false, true}) {
    const std::string file = make_zip(
        {{"a.npy", make_npy("|u1", {2, 3}, "abcdef")}, {"b.npy", make_npy("<i2", {1}, "\xfe\xff")}},
        deflated);
    EXPECT_EQ(read_npz_member(file, "a", "f").bytes, "abcdef");
    EXPECT_EQ(to_integers(read_npz_member(file, "b", "f"), "b"), (std::vector<int64_t>{-2}));
    EXPECT_EQ(refusal([&] { read_npz_member(file, "c", "f"); }),
              "f: no array c; it has a.npy, b.npy");
  }
}

TEST(NpzTest, FindsTheDirectoryBeforeAComment) {
  std::string file = make_zip({{"a.npy", make_npy("|u1", {1}, "x")}}, false);
  file.replace(file.size() - 2, 2, little(5, 2));
  EXPECT_EQ(read_npz_member(file + "hello", "a", "f").bytes, "x");
}

TEST(NpzTest, RefusesEveryCut) {
  for (const bool deflated : {false, true}) {
    const std::string file = make_zip({{"a.npy", make_npy("|u1", {6}, "abcdef")}}, deflated);
    for (size_t size = 0; size < file.size(); ++size) {
      ASSERT_NE(refusal([&] { read_npz_member(file.substr(0, size), "a", "f"); })[0], '(') << size;
    }
  }
}

TEST(NpzTest, RefusesAMemberWhoseBytesChanged) {
  std::string file = make_zip({{"a.npy", make_npy("|u1", {6}, "abcdef")}}, false);
  file[file.find("abcdef")] = 'A';
  EXPECT_EQ(refusal([&] { read_npz_member(file, "a", "f"); }),
            "f: a: not a whole .npz (zip) file: a member's check sum is wrong; write it again");
}

TEST(NpzTest, RefusesSizesThatTheFileCannotHold) {
  std::string file = make_zip({{"a.npy", make_npy("|u1", {6}, "abcdef")}}, true);
  const size_t entry = file.find("PK\1\2");
  file.replace(entry + 24, 4, little(0x7fffffff, 4));
  EXPECT_NE(refusal([&] { read_npz_member(file, "a", "f"); }).find("cannot hold 2147483647"),
            std::string::npos);
}

TEST(ParseNpyTest, RefusesEverythingButPlainNumbers) {
  const auto refused = [](const std::string& bytes) {
    return refusal([&] { parse_npy(bytes, "a"); });
  };
  EXPECT_EQ(refused(make_npy("|O", {1}, "x")),
            "a: an array of Python objects, whose pickle is not read; save plain numbers");
  EXPECT_EQ(refused(make_npy(">i8", {1}, std::string(8, 'x'))),
            "a: values of type \">i8\" are not read; save uint8 images and integer labels");
  EXPECT_NE(refused(make_npy("<U4", {1}, std::string(16, 'x')))[0], '(');
  EXPECT_NE(refused(make_npy("|u1", {2}, "x")).find("1 bytes of values, its shape says (2) of |u1"),
            std::string::npos);
  EXPECT_NE(refused(make_npy("<i8", {1LL << 62, 4}, std::string(8, 'x')))[0], '(');
  EXPECT_NE(refused(make_npy("|u1", {0}, ""))[0], '(');
  std::string fortran = make_npy("|u1", {2, 1}, "xy");
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_EQ(refused(fortran), "a: in Fortran's order; save numpy.ascontiguousarray of it");
  std::string twice = make_npy("|u1", {2, 1}, "xy");
  twice.replace(twice.find("'shape'"), 7, "'descr'");
  EXPECT_EQ(refused(twice), "a: its .npy header is damaged; write it again");
}

TEST(ParseNpyTest, TakesIntegersOfEveryWidth) {
  const auto integers = [](const std::string& type, const std::string& bytes) {
    return to_integers(parse_npy(make_npy(type, {1}, bytes), "a"), "a").front();
  };
  EXPECT_EQ(integers("|u1", "\xff"), 255);
  EXPECT_EQ(integers("|i1", "\xff"), -1);
  EXPECT_EQ(integers("<u2", "\xff\xff"), 65535);
  EXPECT_EQ(integers("<i4", "\xff\xff\xff\xff"), -1);
  EXPECT_EQ(integers("<u4", "\xff\xff\xff\xff"), 4294967295);
  EXPECT_EQ(integers("<i8", std::string(8, '\xff')), -1);
  EXPECT_EQ(refusal([&] { integers("<u8", std::string(8, '\xff')); }),
            "a: 18446744073709551615 is too large");
  EXPECT_EQ(refusal([&] { integers("<f4", std::string(4, '\0')); }),
            "a: values of type \"<f4\", expected integers");
}

}  // namespace
}  // namespace fedsmooth
