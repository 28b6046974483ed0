// Tests of what another host gets of this one's threads: which of them, in which order, and what comes with
// it. docs/protocols/far.md, parcels.md (PA5).
// test: timeout=60
#include "sched/far_calls.hpp"
#include "sched/deque.hpp"
#include "sched/ready_queue.hpp"
#include "sched/segment_list.hpp"

#include "sched/host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace host_of_tests;
using godwit::transport::far::call_table;
using godwit::transport::far::entry;
using godwit::transport::shm::near_range;

godwit::stack::range heap_of_test() noexcept { return {0x7000'0000'0000, 0x7100'0000'0000}; }

constexpr data_part here_lies{0x10000, 4096}, there_lies{0x20000, 65536};

struct far_calls : testing::Test {
  host here{2, 2};
  godwit::base::small_random random{1};
  call_site site{&here.memory(), &here.words(0), &here.node(), &random, 3};
  call_table table;
  std::unique_ptr<entry> e = std::make_unique<entry>();
  far_calls() { enter_calls(table, site); }

  void push(std::uint32_t worker, image* im) {
    ready_queue own(here.memory(), here.words(worker), godwit::base::holder_of(worker));
    own.push(im, here.ref_of(im), rank::last);
  }
  /// A suspended thread; @p number is what it completes.
  image* suspended(std::uint32_t worker, ref number, std::uint64_t stack, data_part data = {}) {
    auto* im = static_cast<image*>(here.heap_of(worker).allocate(object_kind::image, sizeof(image) + stack));
    im->sp = im->low = 4096;
    im->top = im->bytes_end = 4096 + stack;
    im->own_record = number;
    im->fork = im->bound = im->wanted = false;
    im->fp = im->extra = 0;
    im->data = data;
    std::memset(im->bytes(), static_cast<int>(number), stack);
    push(worker, im);
    return im;
  }
  /// One that was sent to memory, and has not begun.
  void sent(std::uint32_t worker, ref number, std::uint64_t closure, data_part data) {
    auto* im = static_cast<parcel_image*>(
        here.heap_of(worker).allocate(object_kind::image, sizeof(parcel_image) + closure));
    im->sp = not_begun;
    im->low = im->bytes_end = 0;
    im->fork = im->bound = true;
    im->data = data;
    im->what = {};
    im->what.record = number;
    im->what.bytes = closure;
    std::memset(static_cast<void*>(im + 1), static_cast<int>(number), closure);
    push(worker, im);
  }
  const entry& call(std::uint64_t what, std::uint64_t scope) {
    e->head = {};
    e->head.what = godwit::transport::far::op::call;
    e->head.a = what;
    e->head.b = scope | call_scope::whole_host;
    table.carry_out(*e, {[](void*, std::size_t) noexcept -> std::byte* { return nullptr; }, nullptr});
    return *e;
  }
  /// The record of the thread that comes, 0: none.
  ref steal(std::uint64_t scope = 0) {
    call(call_no::steal, scope);
    if (e->head.result != static_cast<std::uint64_t>(loot_kind::suspended)) return 0;
    loot got;
    std::memcpy(&got, e->data, sizeof got);
    return got.own_record;
  }
  /// The records of those that come with @p part.
  std::vector<ref> steal_parcels(const data_part& part) {
    call(call_no::steal, call_scope::with_data);
    std::vector<ref> all;
    if (e->head.result != static_cast<std::uint64_t>(loot_kind::parcels)) return all;
    data_part data;
    std::memcpy(&data, e->data, sizeof data);
    EXPECT_TRUE(data == part);
    for (std::uint64_t at = sizeof(closure_line); at < e->head.info;) {
      parcel p;
      std::memcpy(static_cast<void*>(&p), e->data + at, sizeof p);
      for (std::uint64_t i = 0; i < p.bytes; ++i)
        EXPECT_EQ(e->data[at + sizeof p + i], static_cast<std::byte>(p.record)) << "the closure";
      all.push_back(p.record);
      at += p.all_bytes();
    }
    return all;
  }
  bool sees(std::uint64_t scope = 0) {
    return call(call_no::look, scope).head.result == static_cast<std::uint64_t>(sight::work);
  }
};

TEST_F(far_calls, who_leaves_no_data_behind_goes_first_and_the_lightest_of_these) {
  EXPECT_FALSE(sees());
  suspended(0, 11, 640, here_lies);
  suspended(0, 12, 1280);
  suspended(0, 13, 640);
  suspended(1, 14, 64, there_lies);
  EXPECT_TRUE(sees());
  EXPECT_EQ(steal(), 13u);
  EXPECT_EQ(steal(), 12u);
  std::vector<ref> rest{steal(), steal()};
  std::ranges::sort(rest);
  EXPECT_EQ(rest, (std::vector<ref>{11, 14})) << "better far from it than not at all";
  EXPECT_EQ(steal(), 0u);
  EXPECT_FALSE(sees());
}

TEST_F(far_calls, who_looks_in_vain_hears_whether_all_are_idle) {
  const auto seen = [&] { return static_cast<sight>(call(call_no::look, 0).head.result); };
  const auto taken = [&] { return static_cast<loot_kind>(call(call_no::steal, 0).head.result); };
  here.node().idle = 1;
  EXPECT_EQ(seen(), sight::nothing);
  EXPECT_EQ(taken(), loot_kind::nothing);
  here.node().idle = 2;
  EXPECT_EQ(seen(), sight::all_idle);
  EXPECT_EQ(taken(), loot_kind::all_idle);
  EXPECT_EQ(here.hot(0).poll.load() + here.hot(1).poll.load(), 2u) << "who has something next, shares it";
  suspended(0, 11, 640);
  EXPECT_EQ(seen(), sight::work);
  EXPECT_EQ(taken(), loot_kind::suspended);
}

TEST_F(far_calls, of_those_with_data_the_one_with_least) {
  suspended(0, 11, 640, there_lies);
  suspended(0, 12, 1280, here_lies);
  EXPECT_EQ(steal(), 12u) << "its stack is larger, its part smaller";
  EXPECT_EQ(steal(), 11u);
}

TEST_F(far_calls, who_is_bound_to_its_host_stays) {
  image* im = suspended(0, 11, 640);
  im->bound = true;
  suspended(0, 12, 1280);
  EXPECT_TRUE(sees());
  EXPECT_EQ(steal(), 12u);
  EXPECT_FALSE(sees());
  EXPECT_EQ(steal(), 0u);
  EXPECT_TRUE(im->wanted);
}

TEST_F(far_calls, who_has_not_begun_stays_if_it_names_the_heap_of_its_host) {
  site.heap_in_use = heap_of_test;
  const std::uintptr_t inside = 0x7000'1234'5678;
  sent(0, 21, 64, here_lies);
  sent(0, 22, 64, here_lies);
  auto* im = here.memory().at<parcel_image>(here.words(0).ready_head.load());
  std::memcpy(static_cast<void*>(im + 1), &inside, sizeof inside);
  EXPECT_EQ(steal_parcels(here_lies), std::vector<ref>{22});
}

TEST_F(far_calls, what_is_read_along_is_what_is_complete_and_all_there) {
  const auto new_record = [&](std::uint32_t worker, std::uint64_t state, std::uint64_t value) {
    auto* r = static_cast<record*>(here.heap_of(worker).allocate(object_kind::record, sizeof(record)));
    clear_record(r);
    r->result.bytes = sizeof value;
    std::memcpy(r->result.small, &value, sizeof value);
    r->state.store(state);
    return here.ref_of(r);
  };
  const ref first = new_record(0, state_done, 1), second = new_record(1, state_done, 2),
            running = new_record(0, state_none, 3), third = new_record(0, state_done, 4),
            elsewhere = new_record(0, state_done, 5), image = here.ref_of(suspended(0, 9, 64)),
            nothing = godwit::transport::make_ref(worker_no{1}, 64), far = first + (std::uint64_t{1} << 36);
  here.memory().at<record>(elsewhere)->result.object = third;
  const auto read = [&](ref r, const std::vector<ref>& others) {
    std::memcpy(e->data, others.data(), others.size() * sizeof(ref));
    e->head = {};
    e->head.what = godwit::transport::far::op::call;
    e->head.a = call_no::read_record;
    e->head.b = r;
    e->head.more[0] = others.size();
    table.carry_out(*e, {[](void*, std::size_t) noexcept -> std::byte* { return nullptr; }, nullptr});
    std::vector<std::uint64_t> values;
    for (std::uint64_t at = 0; at < e->head.info; at += sizeof(result_words)) {
      result_words words;
      std::memcpy(&words, e->data + at, sizeof words);
      values.emplace_back();
      std::memcpy(&values.back(), words.small, sizeof values.back());
    }
    return values;
  };
  EXPECT_EQ(read(first, {running, second, elsewhere, image, nothing, far, third}),
            (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(e->head.result, 1u | 2u << 1 | 2u << 6);
  EXPECT_EQ(read(running, {second}), std::vector<std::uint64_t>{}) << "who joins will wait elsewhere";
  EXPECT_EQ(e->head.result, 0u);
  here.memory().at<record>(second)->references.store(2);
  const std::vector<ref> read_ones{first, second};
  std::memcpy(e->data, read_ones.data(), sizeof(ref) * 2);
  e->head.a = call_no::release_read;
  e->head.b = read_ones.size();
  table.carry_out(*e, {[](void*, std::size_t) noexcept -> std::byte* { return nullptr; }, nullptr});
  EXPECT_EQ(here.memory().at<record>(first)->freed.load(), freed_marked);
  EXPECT_EQ(here.memory().at<record>(second)->freed.load(), freed_not) << "another one will come for it";
  EXPECT_EQ(here.memory().at<record>(second)->references.load(), 1u);
}

TEST_F(far_calls, the_last_reference_of_what_owns_values_is_answered_so_unless_they_were_taken) {
  auto* r = static_cast<record*>(here.heap_of(0).allocate(object_kind::record, sizeof(record)));
  const auto release = [&](std::uint64_t as) {
    e->head = {};
    e->head.what = godwit::transport::far::op::call;
    e->head.a = call_no::release;
    e->head.b = here.ref_of(r);
    e->head.more[0] = as;
    table.carry_out(*e, {[](void*, std::size_t) noexcept -> std::byte* { return nullptr; }, nullptr});
    return e->head.result;
  };
  clear_record(r);
  r->result.owns = godwit::detail::owning::values;
  r->state.store(state_done);
  r->references.store(2);
  EXPECT_EQ(release(0), 0u);
  EXPECT_EQ(release(0), owns_values);
  EXPECT_EQ(r->freed.load(), freed_not) << "by the letter that follows";
  r->references.store(1);
  EXPECT_EQ(release(release_as::taken), 0u);
  EXPECT_EQ(r->freed.load(), freed_marked);
}

TEST_F(far_calls, who_was_sent_here_goes_with_its_part_if_that_is_asked_for) {
  sent(0, 21, 8, here_lies);
  sent(0, 22, 100, there_lies);
  sent(0, 23, 0, here_lies);
  sent(0, 24, 8, {});  // to memory that does not move
  EXPECT_FALSE(sees()) << "it does not look for what it would not get";
  EXPECT_EQ(steal(), 0u);
  EXPECT_TRUE(sees(call_scope::with_data));
  EXPECT_EQ(steal_parcels(here_lies), (std::vector<ref>{21, 23})) << "all of a part, the smallest part first";
  EXPECT_EQ(steal_parcels(there_lies), std::vector<ref>{22});
  EXPECT_FALSE(sees(call_scope::with_data));
  EXPECT_EQ(steal_parcels({}), std::vector<ref>{});
}

TEST_F(far_calls, a_part_that_a_thread_of_the_host_works_on_stays) {
  sent(0, 21, 8, here_lies);
  here.words(1).work_on(here_lies);
  EXPECT_FALSE(sees(call_scope::with_data));
  EXPECT_EQ(steal_parcels(here_lies), std::vector<ref>{});
  suspended(1, 12, 64);
  EXPECT_EQ(steal(call_scope::with_data), 12u);
  here.words(1).work_on({});
  EXPECT_EQ(steal_parcels(here_lies), std::vector<ref>{21});
}

/// Workers that share a continuation each, which stands so many bytes below where stacks begin.
struct sharing : testing::TestWithParam<std::uint64_t> {
  host here{3, 2};
  godwit::base::small_random random{GetParam()};
  call_site site{&here.memory(), &here.words(0), &here.node(), &random, 4};
  call_table table;
  entry e;
  sharing() { enter_calls(table, site); }

  void shares(std::uint32_t worker, ref number, std::uint64_t depth) {
    constexpr std::size_t bytes = 8192;  // two slots, and the stack at the other end
    auto* room = reinterpret_cast<std::byte*>(here.heap_of(worker).allocate(object_kind::image, bytes));
    auto* slots = new (room + 64) spawn_slot[2]();
    // Where all workers say that it lies.
    const auto at =
        reinterpret_cast<std::uint64_t>(here.memory().common() + (room - here.memory(worker).common()));
    slots[0].sp = slots[0].bytes_end = slots[1].bytes_end = at + bytes;
    slots[0].record = 77;
    slots[1].sp = at + bytes - depth;
    slots[1].record = number;
    here.words(worker).top.store(at + 64 + sizeof(spawn_slot));
    here.words(worker).split.store(at + 64 + 2 * sizeof(spawn_slot));
  }
  /// The record of the child that was spawned by the continuation that comes, 0: none.
  ref steal() {
    e.head = {};
    e.head.what = godwit::transport::far::op::call;
    e.head.a = call_no::steal;
    e.head.b = call_scope::whole_host;
    table.carry_out(e, {[](void*, std::size_t) noexcept -> std::byte* { return nullptr; }, nullptr});
    if (e.head.result != static_cast<std::uint64_t>(loot_kind::fork)) return 0;
    loot got;
    std::memcpy(&got, e.data, sizeof got);
    return got.status;
  }
};

TEST_P(sharing, another_host_gets_the_continuation_of_the_oldest_thread) {
  shares(0, 11, 512);
  shares(1, 12, 1024);
  shares(2, 13, 256);
  EXPECT_EQ(steal(), 13u);
  EXPECT_EQ(steal(), 11u);
  here.words(1).lock.store(1);  // its owner takes it back just now
  EXPECT_EQ(steal(), 0u);
  here.words(1).lock.store(0);
  EXPECT_EQ(steal(), 12u);
  EXPECT_EQ(steal(), 0u);
}

TEST_P(sharing, one_that_names_the_heap_stays_and_its_owner_is_asked_to_put_it_aside) {
  site.heap_in_use = heap_of_test;
  const std::uintptr_t inside = heap_of_test().low + 8;
  shares(0, 11, 512);
  shares(1, 12, 1024);
  auto* slot = here.memory().at(worker_no{0}, as_slot(here.words(0).top.load()));
  auto* frames = here.memory().at(worker_no{0}, reinterpret_cast<std::byte*>(slot->sp));
  std::memcpy(frames + 256, &inside, sizeof inside);
  EXPECT_EQ(steal(), 12u);
  EXPECT_EQ(steal(), 0u);
  EXPECT_EQ(e.head.result, static_cast<std::uint64_t>(loot_kind::later));
  EXPECT_EQ(here.words(0).put_aside.load(), 1u);
  EXPECT_EQ(here.words(1).put_aside.load(), 0u);
  EXPECT_EQ(here.words(0).lock.load(), 0u);
  std::memset(frames + 256, 0, sizeof inside);
  for (std::uintptr_t* place : {&slot->fp, &slot->extra}) {
    *place = inside;
    EXPECT_EQ(steal(), 0u);
    *place = 0;
  }
  EXPECT_EQ(steal(), 11u);
  shares(2, 0, 512);  // child stealing: a thread that has not begun
  slot = here.memory().at(worker_no{2}, as_slot(here.words(2).top.load()));
  slot->sp = 0;
  slot->record = 13;
  slot->extra = 1;
  EXPECT_EQ(steal(), 0u);
  EXPECT_EQ(e.head.result, static_cast<std::uint64_t>(loot_kind::nothing));
  slot->extra = 0;
  steal();
  EXPECT_EQ(e.head.result, static_cast<std::uint64_t>(loot_kind::task));
}
// Its holder may have died, and who is asked is who has to tell.
TEST_P(sharing, one_that_needs_a_segment_stays_while_the_list_of_these_is_locked) {
  shares(0, 11, 512);
  heap& own = here.heap_of(0);
  const auto made = [&] {
    auto* s = static_cast<godwit::sched::segment*>(
        own.allocate(object_kind::segment, sizeof(godwit::sched::segment)));
    s->before = s->behind = s->views = 0;
    s->state = segment_runs;
    return here.ref_of(s);
  };
  const segment_list list(here.memory(), here.node(), 1);
  const ref running = made(), spare = made();
  list.link_last(running);
  here.words(0).segment.store(running);
  here.words(0).spare_segment.store(spare);
  here.node().segments_lock.store(2);
  EXPECT_EQ(steal(), 0u);
  EXPECT_EQ(e.head.result, static_cast<std::uint64_t>(loot_kind::later));
  EXPECT_EQ(here.words(0).spare_segment.load(), spare);
  EXPECT_EQ(here.words(0).lock.load(), 0u);
  here.node().segments_lock.store(0);
  EXPECT_EQ(steal(), 11u);
  EXPECT_EQ(here.words(0).spare_segment.load(), 0u);
  EXPECT_EQ(list.at(running).behind, spare);
  EXPECT_EQ(here.node().segments_lock.load(), 0u);
}
INSTANTIATE_TEST_SUITE_P(seeds, sharing, testing::Range<std::uint64_t>(1, 7));

/// The bytes of answers that do not fit into their entry.
std::vector<std::byte> big;

/// Records of worker 1 that workers of other hosts complete: host 2's only one is worker 2.
struct completing : far_calls {
  static constexpr near_range elsewhere{2, 1};
  image came_;
  record* rec = static_cast<record*>(here.heap_of(1).allocate(object_kind::record, sizeof(record)));

  image* waiter(std::uint64_t stack) {
    auto* im = static_cast<image*>(here.heap_of(1).allocate(object_kind::image, sizeof(image) + stack));
    im->sp = im->low = 4096;
    im->top = im->bytes_end = 4096 + stack;
    im->own_record = 31;
    im->waited_for = 32;
    im->next = 33;
    im->fp = im->extra = 0;
    im->bound = im->wanted = false;
    std::memset(im->bytes(), 7, stack);
    return im;
  }
  /// @p who: already known to wait. Gives back where the bytes are that are not in the entry.
  const std::byte* complete(near_range asker, ref who = 0, bool in_answer = false) {
    const completion what{who, asker, in_answer};
    e->head = {};
    e->head.what = godwit::transport::far::op::call;
    e->head.a = call_no::complete;
    e->head.target = worker_no{1};
    e->head.b = who == 0 ? here.ref_of(rec) : 0;
    std::memcpy(e->data, &what, sizeof what);
    big.clear();
    return table.carry_out(*e, {[](void*, std::size_t bytes) noexcept {
                                  big.resize(bytes);
                                  return big.data();
                                },
                                nullptr});
  }
  const image& came() {
    std::memcpy(static_cast<void*>(&came_), e->data, sizeof came_);
    return came_;
  }
};

TEST_F(completing, says_what_the_state_was) {
  for (const std::uint64_t before : {state_none, state_detached}) {
    rec->state = before;
    EXPECT_EQ(complete(elsewhere), nullptr);
    EXPECT_EQ(e->head.result, before);
    EXPECT_EQ(e->head.info, 0u);
    EXPECT_EQ(e->head.target, worker_no{1}) << "it does not go on";
    EXPECT_EQ(rec->state.load(), state_done);
  }
}

TEST_F(completing, who_waits_comes_whole) {
  for (const std::uint64_t stack : {640u, 100'000u}) {
    for (const bool known : {false, true}) {  // completed word by word before
      image* im = waiter(stack);
      const ref r = here.ref_of(im);
      rec->state = r;
      const std::byte* where = complete(elsewhere, known ? r : 0);
      EXPECT_EQ(e->head.result, r);
      EXPECT_EQ(rec->state.load(), known ? r : state_done);
      ASSERT_EQ(e->head.info, sizeof(image));
      EXPECT_EQ(e->head.bytes, stack);
      EXPECT_EQ(e->head.local, 4096u);
      EXPECT_EQ(came().own_record, 31u);
      EXPECT_EQ(came().waited_for, 32u);
      EXPECT_EQ(came().next, 33u) << "who waits behind it";
      EXPECT_EQ(where == nullptr, stack == 640) << "small ones lie in the entry";
      const std::byte* bytes = where != nullptr ? where : e->data + sizeof(image);
      EXPECT_EQ(std::count(bytes, bytes + stack, std::byte{7}), static_cast<std::ptrdiff_t>(stack));
      EXPECT_EQ(im->freed.load(), freed_marked) << "its owner may take it back";
    }
  }
}

TEST_F(completing, goes_on_to_where_the_waiter_is) {
  const ref there = godwit::transport::make_ref(worker_no{2}, 4096);
  rec->state = there;
  EXPECT_EQ(complete({3, 1}), nullptr) << "for a third host";
  EXPECT_EQ(rec->state.load(), state_done);
  EXPECT_EQ(e->head.target, worker_no{2});
  completion now;
  std::memcpy(&now, e->data, sizeof now);
  EXPECT_EQ(now.waiter, there);
  EXPECT_EQ(now.near.first, 3u);
}

TEST_F(completing, a_waiter_of_the_askers_host_is_only_named) {
  const ref there = godwit::transport::make_ref(worker_no{2}, 4096);
  rec->state = there;
  EXPECT_EQ(complete(elsewhere), nullptr);
  EXPECT_EQ(e->head.result, there);
  EXPECT_EQ(e->head.info, 0u);
  EXPECT_EQ(e->head.target, worker_no{1});
}

TEST_F(completing, who_may_come_in_the_answer_only_stays_if_it_does_not_fit) {
  image* small = waiter(640);
  EXPECT_EQ(complete(elsewhere, here.ref_of(small), true), nullptr);
  EXPECT_EQ(e->head.bytes, 640u);
  EXPECT_EQ(small->freed.load(), freed_marked);
  image* large = waiter(godwit::transport::far::inline_bytes);
  EXPECT_EQ(complete(elsewhere, here.ref_of(large), true), nullptr);
  ASSERT_EQ(e->head.info, sizeof(image));
  EXPECT_EQ(e->head.bytes, 0u);
  EXPECT_EQ(came().next, 33u) << "who waits behind it";
  EXPECT_EQ(large->freed.load(), freed_not);
}

TEST_F(completing, who_is_bound_to_its_host_stays_there) {
  image* im = waiter(640);
  im->bound = true;
  rec->state = here.ref_of(im);
  EXPECT_EQ(complete(elsewhere), nullptr);
  EXPECT_EQ(e->head.result, here.ref_of(im));
  ASSERT_EQ(e->head.info, sizeof(image));
  EXPECT_EQ(e->head.bytes, 0u);
  EXPECT_EQ(came().next, 33u) << "who waits behind it";
  EXPECT_EQ(im->freed.load(), freed_not);
}

TEST_F(far_calls, what_does_not_fit_follows_later) {
  for (ref i = 21; i < 25; ++i) sent(0, i, 1100, here_lies);
  EXPECT_EQ(steal_parcels(here_lies), (std::vector<ref>{21, 22, 23}));
  EXPECT_EQ(steal_parcels(here_lies), std::vector<ref>{24});
  sent(0, 25, 4000, here_lies);
  EXPECT_EQ(steal_parcels(here_lies), std::vector<ref>{}) << "larger than a message";
}

}  // namespace
