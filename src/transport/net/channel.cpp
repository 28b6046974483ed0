// See channel.hpp and docs/protocols/switch.md.
#include "transport/net/channel.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/world.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit::transport::net {

using far::entry;
using far::header;
using far::outcome;
using far::record;

namespace {
constexpr std::uint16_t most_hops = 16;  // then it has met a rule that is being changed: it is sent again
constexpr std::size_t most_in_turn = 64;
constexpr std::uint64_t greet_every_ns = 20'000'000;
}  // namespace

channel::channel(channel_setup setup)
    : setup_(std::move(setup)), numbers_(setup_.workers), records_(setup_.workers) {
  for (std::uint32_t w = 0; w < setup_.workers; ++w) records_[w].asker = w;
}

bool channel::greet(std::uint64_t patience_ns) {
  if (!has_switch()) return true;
  if (by_openflow()) {
    socket_.multicasts_from(setup_.at[setup_.my_host]);
    if (setup_.my_host != 0 && !rules_.connect(setup_.rules_at, patience_ns)) return false;
    own_link_ = {setup_.at[setup_.my_host], mac_of(setup_.at[setup_.my_host])};
    rules_.set_home(setup_.my_host, own_link_);
    return rules_are_set(patience_ns);
  }
  struct nobody final : channel_user {
    void carry_out_routed(entry& e) noexcept override { outcome_of(e.head) = 0; }
    void answered(worker_no, std::uint32_t, const header&, const std::byte*) noexcept override {}
  } user;
  packet hello;
  hello.head.kind = godwit_hello;
  hello.head.faults = setup_.faults;
  const std::uint64_t until = base::now_ns() + patience_ns;
  for (std::uint64_t next = 0;;) {
    const std::uint64_t now = base::now_ns();
    if (now >= next) {
      send(hello);
      next = now + greet_every_ns;
    }
    socket_.wait(1);
    turn(user);
    if (greeted_ || now > until) return greeted_;
  }
}

bool channel::clear_rules(std::uint64_t patience_ns) {
  if (!rules_.connect(setup_.rules_at, patience_ns)) return false;
  rules_.clear();
  return rules_are_set(patience_ns);
}

bool channel::rules_are_set(std::uint64_t patience_ns) {
  rules_.confirm(++rebind_number_);
  for (const std::uint64_t until = base::now_ns() + patience_ns;
       base::now_ns() < until && problem_.empty();) {
    for (const std::uint32_t number : rules_.turn(problem_))
      if (number == rebind_number_) return true;
    base::nap(100'000);
  }
  return false;
}

std::uint16_t channel::host_of(worker_no w) const noexcept {
  const auto* const end = setup_.hosts + setup_.host_count;
  const auto* const host =
      std::upper_bound(setup_.hosts, end, index(w),
                       [](std::uint32_t worker, const shm::near_range& h) { return worker < h.first; }) -
      1;
  return static_cast<std::uint16_t>(host - setup_.hosts);
}

void channel::send(packet& p) {
  p.head.magic = godwit_packet_magic;
  p.head.run = setup_.run;
  p.head.from = static_cast<std::uint16_t>(setup_.my_host);
  ++counts_.sent;
  const std::size_t bytes = sizeof p.head + sizeof p.call + p.head.bytes;
  GODWIT_ASSERT(bytes <= packet_bytes, "what goes by datagram fits into one");
  if (setup_.who == channel_setup::told::in_band) return socket_.send(setup_.at[0], &p, bytes);
  if (p.head.kind != godwit_access) return socket_.send(setup_.at[p.head.to], &p, bytes);
  if (const int home = service_of_host(p.head.to); std::exchange(service_, home) != home)
    socket_.set_service(home);
  socket_.send(address_of_block(p.head.block), &p, bytes);
}

/// SW3: as of now, for who waits for the answer is alive and so is what it asks for.
void channel::send_again(packet& p, again& next, std::uint64_t now) {
  p.head.life = life();
  // A frame that would go out where it came in, for a block that is here, is dropped by switches.
  if (by_openflow()) p.head.kind = next.times++ % 2 == 0 ? godwit_access : godwit_direct;
  send(p);
  next.at_ns = now + next.pause_ns;
  next.pause_ns = std::min(2 * next.pause_ns, most_pause_ns);
}

void channel::ask(worker_no asker, entry& e, std::uint32_t slot) {
  if (e.head.a == far::take_over) return begin_take_over(asker, e, slot);
  GODWIT_ASSERT(e.head.bytes <= far::routed_bytes, "what goes by datagram fits into one");
  GODWIT_ASSERT(std::none_of(calls_.begin(), calls_.end(),
                             [&](const call& c) { return c.text.head.asker == index(asker); }),
                "SW1: a worker has one call under way");
  GODWIT_CHECK(!by_openflow() || far::block_of(e.head) >> openflow_block_bits == 0,
               "directory=ovs: addresses of blocks have 40 bits: lower --godwit-global-bytes");
  call& c = calls_.emplace_back();
  godwit_packet& head = c.text.head;
  head.kind = has_switch() ? godwit_access : godwit_direct;
  head.to = host_of(e.head.target);
  head.block = far::block_of(e.head);
  head.number = ++numbers_[index(asker)];  // SW1
  head.asker = index(asker);
  head.slot = slot;
  head.bytes = static_cast<std::uint32_t>(e.head.bytes);
  c.text.call = e.head;
  std::memcpy(c.text.data, e.data, e.head.bytes);
  send_again(c.text, c.next, base::now_ns());
}

bool channel::turn(channel_user& user) {
  bool any = false;
  packet p;
  address from;
  for (std::size_t n = 0; n < most_in_turn; ++n) {
    const std::size_t bytes = socket_.receive(&p, sizeof p, from);
    if (bytes == 0) break;
    if (bytes < sizeof p.head + sizeof p.call || p.head.magic != godwit_packet_magic ||
        p.head.run != setup_.run || p.head.bytes != bytes - sizeof p.head - sizeof p.call)
      continue;
    ++counts_.received;
    any = true;
    receive(p, user);
  }
  if (by_openflow() && problem_.empty())
    for (const std::uint32_t number : rules_.turn(problem_)) is_bound(number);
  if (!kept_.empty())
    for (packet& k : std::exchange(kept_, {})) serve(k, user);
  std::erase_if(take_overs_, [&](const take_over& t) {
    if (t.left == 0) user.answered(t.mover, t.slot, {}, nullptr);
    return t.left == 0;
  });
  if (calls_.empty() && rebinds_.empty()) return any;
  const std::uint64_t now = base::now_ns();
  const auto look = [&](packet& text, again& next) {
    if (now < next.at_ns) return;
    ++counts_.resent;
    send_again(text, next, now);
  };
  for (call& c : calls_) look(c.text, c.next);
  if (!by_openflow())
    for (rebind& r : rebinds_) look(r.text, r.next);
  return any;
}

void channel::receive(packet& p, channel_user& user) {
  switch (p.head.kind) {
    case godwit_ready:
      greeted_ = true;
      return;
    case godwit_bound:
      return is_bound(p.head.number);
    case godwit_access:
    case godwit_direct:
      if (p.head.asker < setup_.workers) serve(p, user);
      return;
    case godwit_answer: {
      const auto c = std::find_if(calls_.begin(), calls_.end(), [&](const call& one) {
        return one.text.head.asker == p.head.asker && one.text.head.number == p.head.number;
      });
      if (c == calls_.end()) return;  // a second one
      const auto slot = c->text.head.slot;
      calls_.erase(c);
      return user.answered(worker_no{p.head.asker}, slot, p.call, p.data);
    }
    default:
      return;
  }
}

/// SW2, SW3: carry out @p p here if it was not done before, and is not older than the memory.
void channel::serve(packet& p, channel_user& user) {
  if (p.head.life < life()) return;
  record& last = records_[p.head.asker];
  if (p.head.number <= last.number) {
    ++counts_.doubled;
    if (p.head.number < last.number) return;  // its asker has the answer
    header head{};
    head.what = far::op::call;
    head.result = last.result;
    head.info = last.bytes;
    return give_answer(p, head, last.said, last.bytes);
  }
  entry e;
  e.head = p.call;
  const worker_no here{setup_.hosts[setup_.my_host].first};
  e.head.target = here;
  std::memcpy(e.data, p.data, p.head.bytes);
  user.carry_out_routed(e);
  if (e.head.target != here) {
    if (p.head.hops == most_hops) return;
    ++counts_.sent_on;
    ++p.head.hops;
    p.head.kind = godwit_direct;
    p.head.to = host_of(e.head.target);
    std::memcpy(p.data, e.data, p.head.bytes);
    return send(p);
  }
  switch (static_cast<outcome>(outcome_of(e.head))) {
    case outcome::not_now:
      return keep(p);
    case outcome::changed:
      GODWIT_ASSERT(e.head.info <= far::most_said, "what is remembered has room");
      last.number = p.head.number;
      last.result = e.head.result;
      last.bytes = static_cast<std::uint32_t>(e.head.info);
      std::memcpy(last.said, e.data, e.head.info);
      break;
    case outcome::read:
      break;
  }
  give_answer(p, e.head, e.data, e.head.info);
}

void channel::give_answer(const packet& asked, const header& head, const std::byte* data,
                          std::uint64_t bytes) {
  packet p;
  p.head = asked.head;
  p.head.kind = godwit_answer;
  p.head.to = host_of(worker_no{asked.head.asker});
  p.head.bytes = static_cast<std::uint32_t>(bytes);
  p.call = head;
  std::memcpy(p.data, data, bytes);
  send(p);
}

void channel::keep(const packet& p) {
  for (packet& k : kept_)
    if (k.head.asker == p.head.asker) {
      if (k.head.number < p.head.number) k = p;
      return;
    }
  kept_.push_back(p);
}

void channel::merge(const record& r) noexcept {
  record& mine = records_[r.asker];
  if (r.number > mine.number) mine = r;
}

/// A mover of ours has a block, or is about to: what its last owner remembers comes first, then the switch
/// learns it.
void channel::begin_take_over(worker_no mover, entry& e, std::uint32_t slot) {
  const std::uint64_t records = e.head.b, bindings = has_switch() ? e.head.more[0] : 0;
  GODWIT_ASSERT(records <= far::most_records && bindings <= far::most_bindings, "they came along");
  for (std::uint64_t i = 0; i < records; ++i) {
    record r;
    std::memcpy(static_cast<void*>(&r), e.data + i * sizeof r, sizeof r);
    merge(r);
  }
  take_overs_.push_back({mover, slot, static_cast<std::uint32_t>(bindings)});
  for (std::uint64_t i = 0; i < bindings; ++i) {
    far::binding b;
    std::memcpy(&b, e.data + records * sizeof(record) + i * sizeof b, sizeof b);
    rebind& r = rebinds_.emplace_back();
    r.mover = mover;
    r.text.head.kind = godwit_rebind;
    r.text.head.block = b.block;
    r.text.head.version = b.version;  // SW4
    r.text.head.number = ++rebind_number_;
    if (by_openflow()) {
      rules_.set_block(b.block, own_link_);
      rules_.confirm(rebind_number_);
    } else {
      send_again(r.text, r.next, base::now_ns());
    }
  }
}

void channel::is_bound(std::uint64_t number) noexcept {
  const auto r = std::find_if(rebinds_.begin(), rebinds_.end(),
                              [&](const rebind& one) { return one.text.head.number == number; });
  if (r == rebinds_.end()) return;
  const worker_no mover = r->mover;
  rebinds_.erase(r);
  const auto t = std::find_if(take_overs_.begin(), take_overs_.end(),
                              [&](const take_over& one) { return one.mover == mover; });
  GODWIT_ASSERT(t != take_overs_.end(), "who binds has asked");
  --t->left;
}

void channel::enter_calls(far::call_table& table) { table.enter(far::give_records, give_records, this); }

std::byte* channel::give_records(void* own, entry& e, const far::answer_room&) noexcept {
  const std::vector<record>& all = static_cast<channel*>(own)->records_;
  std::size_t n = 0;
  std::uint64_t next = e.head.b;
  for (; next < all.size() && n < far::most_records; ++next)
    if (all[next].number != 0) std::memcpy(e.data + n++ * sizeof(record), &all[next], sizeof(record));
  e.head.info = n * sizeof(record);
  e.head.result = next < all.size() ? next : 0;
  return nullptr;
}

}  // namespace godwit::transport::net
