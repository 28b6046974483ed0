// See network.hpp.
#include "sim/network.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace godwit::sim {

using transport::mpi::component;
using transport::mpi::operation;
using transport::mpi::rma_op;
using transport::mpi::rma_window;

namespace {

network* newest_ = nullptr;
constexpr std::uint64_t sent = 1;  // the operation of a send: its bytes are on their way, and it is complete

/// For a heap: the last to come is the largest. (message is private.)
constexpr auto later = [](const auto& a, const auto& b) {
  return a.arrival != b.arrival ? a.arrival > b.arrival : a.order > b.order;
};

}  // namespace

network::network(setup s)
    : setup_(std::move(s)),
      nodes_(setup_.nodes),
      ranks_(setup_.ranks.size()),
      random_(setup_.seed * 40503 + 3) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].where = setup_.ranks[i];
  newest_ = this;
  if (setup_.delay && random_.below(2) == 0) {
    links_are_slow_ = true;
    slow_factor_ = std::uint64_t{32} << random_.below(6);  // 32 to 1024
  }
}

network::~network() { newest_ = nullptr; }

/// What takes @p ns otherwise takes very long now and then, or always from this rank to that one.
std::uint64_t network::delayed(std::uint64_t ns, std::uint32_t from, std::uint32_t to) noexcept {
  if (!setup_.delay) return ns;
  const std::uint64_t link = (setup_.seed << 20 ^ from << 10 ^ to) * 0x9E3779B97F4A7C15ull;
  return (links_are_slow_ ? link >> 62 == 0 : random_.below(16) == 0) ? ns * slow_factor_ : ns;
}

void network::send(const void* data, std::size_t bytes, int to, int tag) {
  const machine& model = *setup_.model;
  const std::uint32_t me = caller();
  const endpoint& target = ranks_[static_cast<std::size_t>(to)];
  node& mine = nodes_[ranks_[me].where.node];
  setup_.turns->take(model.overhead_ns);

  const std::uint64_t leaves = std::max(setup_.turns->now_ns(), mine.out_free);
  mine.out_free = leaves + model.gap_ns + model.bytes_ns(bytes);
  message m;
  m.arrival =
      leaves +
      delayed(model.wire_ns(ranks_[me].where.node, target.where.node), me, static_cast<std::uint32_t>(to)) +
      model.bytes_ns(bytes);
  if (setup_.jitter_ns != 0 || setup_.delay) {
    std::uint64_t& last = last_arrival_[std::uint64_t{me} << 32 | static_cast<std::uint32_t>(to)];
    last = m.arrival = std::max(m.arrival + random_.below(setup_.jitter_ns + 1), last);
  }
  m.order = order_++;
  m.from = static_cast<int>(me);
  m.to = to;
  m.tag = tag;
  m.bytes = bytes;
  m.data.reset(new std::byte[bytes]);
  std::memcpy(m.data.get(), data, bytes);
  ++traffic_.messages;
  traffic_.bytes += bytes;

  const std::uint64_t arrival = m.arrival;
  std::vector<message>& coming = nodes_[target.where.node].coming;
  coming.push_back(std::move(m));
  std::push_heap(coming.begin(), coming.end(), later);
  setup_.turns->rouse(setup_.first_seat + static_cast<std::uint32_t>(to), arrival);
}

/// When @p m, the first of those that come to @p h, has come in.
std::uint64_t network::ready(const node& h, const message& m) const noexcept {
  return std::max(m.arrival, h.in_free + setup_.model->bytes_ns(m.bytes));
}

/// What has come to a node by now goes to its ranks.
void network::come_in(std::uint32_t node_number) noexcept {
  node& h = nodes_[node_number];
  const std::uint64_t now = setup_.turns->now_ns();
  while (!h.coming.empty()) {
    const std::uint64_t at = ready(h, h.coming.front());
    if (at > now) return;
    h.in_free = at + setup_.model->gap_ns;
    std::pop_heap(h.coming.begin(), h.coming.end(), later);
    message m = std::move(h.coming.back());
    h.coming.pop_back();
    traffic_.queued_ns += at - m.arrival;
    endpoint& to = ranks_[static_cast<std::size_t>(m.to)];
    // Another rank of this node may have looked already, and be about to sleep.
    if (const auto rank = static_cast<std::uint32_t>(m.to); rank != caller())
      setup_.turns->rouse(setup_.first_seat + rank, now);
    const auto fitting =
        std::find_if(to.posted.begin(), to.posted.end(), [&](const receive* r) { return fits(*r, m); });
    if (fitting == to.posted.end()) {
      to.unexpected.push_back(std::move(m));
    } else {
      complete(**fitting, m);
      to.posted.erase(fitting);
    }
  }
}

void network::rouse_at_next() noexcept {
  const node& h = nodes_[ranks_[caller()].where.node];
  if (h.coming.empty()) return;
  const message& first = h.coming.front();  // whom it is for sees to those before its own
  const auto to = static_cast<std::uint32_t>(first.to);
  const bool hears = setup_.turns->hears(setup_.first_seat + to);
  setup_.turns->rouse(setup_.first_seat + (hears ? to : caller()), ready(h, first));
}

bool network::fits(const receive& r, const message& m) noexcept {
  return (r.from == transport::mpi::any_source || r.from == m.from) &&
         (r.tag == transport::mpi::any_tag || r.tag == m.tag);
}

void network::complete(receive& r, const message& m) noexcept {
  GODWIT_CHECK(m.bytes <= r.room, "sim: a message of %zu bytes fits where it is received: %zu", m.bytes,
               r.room);
  std::memcpy(r.to, m.data.get(), m.bytes);
  r.done = true;
  r.source = m.from;
  r.tag_found = m.tag;
  r.bytes = m.bytes;
}

network::receive* network::post(void* data, std::size_t bytes, int from, int tag) {
  endpoint& mine = ranks_[caller()];
  auto r = std::make_unique<receive>(receive{from, tag, static_cast<std::byte*>(data), bytes});
  const auto there = std::find_if(mine.unexpected.begin(), mine.unexpected.end(),
                                  [&](const message& m) { return fits(*r, m); });
  if (there != mine.unexpected.end()) {
    complete(*r, *there);
    mine.unexpected.erase(there);
  } else {
    mine.posted.push_back(r.get());
  }
  return r.release();
}

/// True: it is complete. What its message is about may be done at once: others have come as far.
bool network::look(receive* r) noexcept {
  if (!r->done) come_in(ranks_[caller()].where.node);
  if (!r->done) return false;
  setup_.turns->take(setup_.model->overhead_ns + setup_.model->serve_ns);
  setup_.turns->catch_up();
  return true;
}

void network::cancel(receive* r) noexcept {
  std::erase(ranks_[caller()].posted, r);
  delete r;
}

void network::one_sided(int target, std::uint64_t displacement, std::size_t bytes,
                        std::function<void(std::byte*)> effect) noexcept {
  endpoint& mine = ranks_[caller()];
  const rank& there = ranks_[static_cast<std::size_t>(target)].where;
  const std::uint64_t half = delayed(
      setup_.model->rma_ns / 2 + setup_.model->hop_ns * setup_.model->hops(mine.where.node, there.node),
      caller(), static_cast<std::uint32_t>(target));
  mine.under_way.push_back(
      {target, setup_.turns->now_ns() + half, half, bytes, displacement, std::move(effect)});
}

void network::take_effect(const operation_to& o) noexcept {
  engine& turns = *setup_.turns;
  endpoint& mine = ranks_[caller()];
  const rank& there = ranks_[static_cast<std::size_t>(o.target)].where;
  turns.nap_until(o.arrival);
  node& h = nodes_[there.node];
  const std::uint64_t now = turns.now_ns(), begins = std::max(now, h.one_sided_free);
  h.one_sided_free = begins + setup_.model->rma_gap_ns;
  traffic_.queued_ns += begins - now;
  if (begins > now) turns.nap_until(begins);
  o.effect(there.window + o.displacement);
  mine.back_at = std::max(mine.back_at, begins + o.back + setup_.model->bytes_ns(o.bytes));
  ++traffic_.one_sided;
  traffic_.bytes += o.bytes;
}

/// Those to @p target, and others that come to their targets meanwhile.
void network::flush(int target) noexcept {
  std::vector<operation_to>& all = ranks_[caller()].under_way;
  while (std::ranges::any_of(all, [&](const operation_to& o) { return o.target == target; })) {
    const auto first = std::ranges::min_element(all, {}, &operation_to::arrival);  // of equals the older one
    const operation_to o = std::move(*first);
    all.erase(first);
    take_effect(o);
  }
  setup_.turns->nap_until(ranks_[caller()].back_at);
}

/// The functions of the table.
struct calls {
  using receive = network::receive;

  static int isend(const void* data, std::size_t bytes, int to, int tag, operation* out) {
    newest_->send(data, bytes, to, tag);
    out->value = sent;
    return 0;
  }
  static int irecv(void* data, std::size_t bytes, int from, int tag, operation* out) {
    out->value = reinterpret_cast<std::uint64_t>(newest_->post(data, bytes, from, tag));
    return 0;
  }
  static int test(operation* op, bool* done, int* source, int* tag, std::size_t* bytes) {
    if (op->value == sent) {
      op->value = 0;
      *done = true;
      return 0;
    }
    auto* r = reinterpret_cast<receive*>(op->value);
    *done = newest_->look(r);
    if (!*done) return 0;
    if (source != nullptr) *source = r->source;
    if (tag != nullptr) *tag = r->tag_found;
    if (bytes != nullptr) *bytes = r->bytes;
    delete r;
    op->value = 0;
    return 0;
  }
  static int cancel(operation* op) {
    newest_->cancel(reinterpret_cast<receive*>(std::exchange(op->value, 0)));
    return 0;
  }
  static int get(const rma_window*, void* to, std::size_t bytes, int target, std::uint64_t displacement) {
    newest_->one_sided(target, displacement, bytes, [=](const std::byte* at) { std::memcpy(to, at, bytes); });
    return 0;
  }
  static int put(const rma_window*, const void* from, std::size_t bytes, int target,
                 std::uint64_t displacement) {
    newest_->one_sided(target, displacement, bytes, [=](std::byte* at) { std::memcpy(at, from, bytes); });
    return 0;
  }
  static int fetch_op(const rma_window*, rma_op op, const std::uint64_t* operand, std::uint64_t* result,
                      int target, std::uint64_t displacement) {
    newest_->one_sided(target, displacement, sizeof *operand, [=](std::byte* at) {
      auto& word = *reinterpret_cast<std::uint64_t*>(at);
      *result = op == rma_op::add       ? std::exchange(word, word + *operand)
                : op == rma_op::replace ? std::exchange(word, *operand)
                                        : word;
    });
    return 0;
  }
  static int compare_swap(const rma_window*, const std::uint64_t* value, const std::uint64_t* expected,
                          std::uint64_t* result, int target, std::uint64_t displacement) {
    newest_->one_sided(target, displacement, sizeof *value, [=](std::byte* at) {
      auto& word = *reinterpret_cast<std::uint64_t*>(at);
      *result = word;
      if (word == *expected) word = *value;
    });
    return 0;
  }
  static int flush(const rma_window*, int target) {
    newest_->flush(target);
    return 0;
  }
  static void error_text(int, char* text, std::size_t bytes) {
    if (bytes != 0) text[0] = '\0';
  }
};

const component& network::functions() noexcept {
  static const component table = [] {
    component c{};
    c.abi = transport::mpi::component_abi;
    c.name = "sim";
    c.isend = calls::isend;
    c.irecv = calls::irecv;
    c.test = calls::test;
    c.cancel = calls::cancel;
    c.get = calls::get;
    c.put = calls::put;
    c.fetch_op = calls::fetch_op;
    c.compare_swap = calls::compare_swap;
    c.flush = calls::flush;
    c.error_text = calls::error_text;
    return c;
  }();
  return table;
}

}  // namespace godwit::sim
