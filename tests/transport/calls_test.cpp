// The table of calls that layers carry out for other hosts. (Carried between ranks: far_test.cpp.)
// test: tsan
#include "transport/far/calls.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace godwit::transport::far;

// Of the name alone, and not of the program or the machine: FNV-1a's own values.
static_assert(call_number("") == 0xcbf29ce484222325);
static_assert(call_number("foobar") == 0x85944171f73967e8);

constexpr auto add = call_number("test.add"), repeat = call_number("test.repeat");

/// A layer whose calls are carried out at its counter.
std::byte* do_add(void* counter, entry& e, const answer_room&) noexcept {
  e.head.result = *static_cast<std::uint64_t*>(counter);
  *static_cast<std::uint64_t*>(counter) += e.head.b;
  return nullptr;
}
/// Another one: as many bytes as it is asked for.
std::byte* do_repeat(void* byte, entry& e, const answer_room& room) noexcept {
  e.head.bytes = e.head.b;
  std::byte* to = e.head.bytes <= inline_bytes ? e.data : room(e.head.bytes);
  std::memset(to, static_cast<int>(*static_cast<std::byte*>(byte)), e.head.bytes);
  return to == e.data ? nullptr : to;
}

struct place {
  std::uint64_t counter = 5;
  std::byte byte{7};
  std::vector<std::byte> room_for_bytes;
  call_table calls;
  std::unique_ptr<entry> e = std::make_unique<entry>();

  std::byte* carry_out(std::uint64_t number, std::uint64_t argument) {
    e->head.what = op::call;
    e->head.a = number;
    e->head.b = argument;
    e->head.result = e->head.info = e->head.bytes = e->head.local = e->head.more[1] = 99;  // of the last one
    return calls.carry_out(*e, {[](void* v, std::size_t n) noexcept {
                                  auto& room = *static_cast<std::vector<std::byte>*>(v);
                                  room.resize(n);
                                  return room.data();
                                },
                                &room_for_bytes});
  }
};

TEST(Calls, WhatALayerEnteredIsCarriedOut) {
  place p;
  p.calls.enter(add, do_add, &p.counter);
  EXPECT_EQ(p.carry_out(add, 3), nullptr);
  EXPECT_EQ(p.e->head.result, 5u);
  EXPECT_EQ(p.counter, 8u);
  EXPECT_EQ(p.e->head.info + p.e->head.bytes + p.e->head.local + p.e->head.more[1], 0u)
      << "nothing is left over";
}

TEST(Calls, ALayerDoesNotNoticeWhatOthersEntered) {
  place one, two;
  one.calls.enter(add, do_add, &one.counter);
  one.calls.enter(repeat, do_repeat, &one.byte);
  two.calls.enter(repeat, do_repeat, &two.byte);
  two.calls.enter(add, do_add, &two.counter);
  for (place* p : {&one, &two}) {
    p->carry_out(add, 1);
    EXPECT_EQ(p->counter, 6u);
    EXPECT_EQ(p->carry_out(repeat, 10), nullptr) << "fits into the entry";
    EXPECT_EQ(p->e->data[9], std::byte{7});
    const std::byte* big = p->carry_out(repeat, inline_bytes + 1);
    EXPECT_EQ(big, p->room_for_bytes.data());
    EXPECT_EQ(big[inline_bytes], std::byte{7});
  }
}

}  // namespace
