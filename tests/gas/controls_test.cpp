// The lock of a control object by itself: who carries out steps for other hosts does not wait for it.
// test: timeout=20
#include "gas/controls.hpp"
#include "transport/far/calls.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace {

using namespace godwit::gas;
namespace far = godwit::transport::far;

struct Controls : testing::Test {
  struct counted {
    control_words words{};
    long state = 0;
  };
  counted object{};
  std::unique_ptr<far::entry> e = std::make_unique<far::entry>();
  place_site site;
  far::call_table table;

  Controls() {
    object.words.magic = control_words::live;
    object.words.capacity = control_words::own_room;
    object.words.room = offsetof(control_words, own);
    site.window = reinterpret_cast<std::byte*>(&object);
    enter_control_calls(table, site);
  }
  /// As another host asks: count on.
  control_answer ask(global_address room = 0) {
    control_request r{};
    r.step = [](void* state, void*, void*) noexcept {
      ++*static_cast<long*>(state);
      return godwit::detail::control_says::done;
    };
    r.room = room;
    r.capacity = 1;
    std::memcpy(e->data, &r, sizeof r);
    e->head = {};
    e->head.what = far::op::call;
    e->head.a = control_call_number;
    e->head.b = sizeof r;
    table.carry_out(*e, {[](void*, std::size_t) noexcept -> std::byte* { return nullptr; }, nullptr});
    EXPECT_GE(e->head.info, sizeof(control_answer));
    control_answer a;
    std::memcpy(static_cast<void*>(&a), e->data, sizeof a);
    return a;
  }
};

TEST_F(Controls, AStepForAnotherHostIsCarriedOut) {
  EXPECT_EQ(ask().what, control_answers::done);
  EXPECT_EQ(object.state, 1);
  EXPECT_EQ(object.words.lock.load(), 0u);
}

// Its holder may have died in a step, and who is asked is who has to tell: CO3.
TEST_F(Controls, NobodyWaitsForALockOnBehalfOfAnotherHost) {
  object.words.lock.store(5);
  EXPECT_EQ(ask().what, control_answers::later);
  EXPECT_EQ(ask(4096).what, control_answers::later);
  EXPECT_EQ(object.state, 0) << "nothing has happened";
  EXPECT_EQ(object.words.capacity, control_words::own_room);
  EXPECT_EQ(object.words.lock.load(), 5u);
  object.words.lock.store(0);
  EXPECT_EQ(ask().what, control_answers::done);
  EXPECT_EQ(object.state, 1);
}

}  // namespace
