// Tests of the protocol buffers encoder, byte for byte against the encoding's definition.
// test: timeout=30 tsan
#include "trace/proto.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using godwit::trace::message;
using std::string_literals::operator""s;

TEST(proto, varints) {
  const auto bytes_of = [](std::uint64_t v) {
    message m;
    m.number(1, v);
    return m.bytes().substr(1);
  };
  EXPECT_EQ(bytes_of(0), "\0"s);
  EXPECT_EQ(bytes_of(1), "\x01"s);
  EXPECT_EQ(bytes_of(127), "\x7f"s);
  EXPECT_EQ(bytes_of(128), "\x80\x01"s);
  EXPECT_EQ(bytes_of(150), "\x96\x01"s);
  EXPECT_EQ(bytes_of(16383), "\xff\x7f"s);
  EXPECT_EQ(bytes_of(16384), "\x80\x80\x01"s);
  EXPECT_EQ(bytes_of(~0ull), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(proto, fields_and_wire_types) {
  message m;
  m.number(1, 150);
  EXPECT_EQ(m.bytes(), "\x08\x96\x01"s);
  m.clear();
  m.text(2, "testing");
  EXPECT_EQ(m.bytes(), "\x12\x07testing"s);
  m.clear();
  m.fixed(47, 0x0102030405060708ull);
  EXPECT_EQ(m.bytes(), "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01"s);
  m.clear();
  m.number(47001, 1);  // 47001 * 8 = 376008
  EXPECT_EQ(m.bytes(), "\xc8\xf9\x16\x01"s);
}

TEST(proto, nesting) {
  message inner, outer;
  inner.number(1, 150);
  outer.nested(3, inner);
  EXPECT_EQ(outer.bytes(), "\x1a\x03\x08\x96\x01"s);
  outer.clear();
  outer.head(3, 300);
  EXPECT_EQ(outer.bytes(), "\x1a\xac\x02"s);
}

}  // namespace
