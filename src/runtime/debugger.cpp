// See debugger.hpp.
#include "runtime/debugger.hpp"

#include <cstddef>
#include <cstring>

#include "base/check.hpp"
#include "gas/words.hpp"
#include "heap/record.hpp"
#include "sched/policies.hpp"
#include "sched/record.hpp"
#include "sched/words.hpp"
#include "stack/pool.hpp"

extern "C" {
// In the executable's or library's symbol table under this name, whatever the build.
[[gnu::used, gnu::visibility("default")]] volatile godwit_debug_info godwit_debug_ = {};
}

namespace godwit::runtime {

namespace {

class table {
 public:
  void add(const char* name, std::uint64_t value) noexcept {
    constexpr std::uint32_t room = sizeof godwit_debug_.entry / sizeof godwit_debug_.entry[0];
    GODWIT_CHECK(used_ < room && std::strlen(name) < sizeof(godwit_debug_entry::name),
                 "the debuggers' table is full, or a name too long: %s", name);
    volatile godwit_debug_entry& e = godwit_debug_.entry[used_++];
    for (std::size_t i = 0; i < sizeof e.name; ++i) e.name[i] = i < std::strlen(name) ? name[i] : '\0';
    e.value = value;
  }
  /// Where a field lies in its object. offsetof is for standard-layout types; objects with a head are none.
  template <class T, class Base, class M>
  void field(const char* name, M Base::*f) noexcept {
    alignas(T) static std::byte room[sizeof(T)];
    auto* object = reinterpret_cast<T*>(room);
    add(name, static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&(object->*f)) - room));
  }
  std::uint32_t used() const noexcept { return used_; }

 private:
  std::uint32_t used_ = 0;
};

void add_places(table& t, const launch& what, std::uint64_t worker) noexcept {
  const transport::shm::segment& memory = what.memory;
  const transport::shm::layout& l = memory.where();
  t.add("worker", worker);
  t.add("first", memory.near().first);
  t.add("count", memory.near().count);
  t.add("workers", what.job.workers);
  t.add("hosts", what.job.host_count);
  t.add("lists_threads", detail::facts_of(what.opts).lists_threads() ? 1 : 0);
  t.add("supervisor", static_cast<std::uint64_t>(what.supervisor));
  t.add("base", reinterpret_cast<std::uint64_t>(memory.common()));
  t.add("span", l.span);
  t.add("front", l.front);
  t.add("fronts", reinterpret_cast<std::uint64_t>(memory.fronts()));
  t.add("hot", l.hot);
  t.add("words", l.words + offsetof(sched::segment_words, worker));
  t.add("slots", l.slots);
  t.add("slots_bytes", l.slots_bytes);
  t.add("heap", l.heap);
  t.add("heap_bytes", l.heap_bytes);
  t.add("stack", l.stack);
  t.add("stack_bytes", l.stack_bytes);
  t.add("ref_offset_bits", transport::ref_offset_bits);
  t.add("ref_is_no_address", transport::ref_is_no_address);
  t.add("in_place", what.job.stacks != nullptr ? 1 : 0);
  if (what.job.stacks != nullptr)
    what.job.stacks->describe([&](const char* name, std::uint64_t value) { t.add(name, value); });
}

void add_deque(table& t) noexcept {
  using detail::hot_words;
  using detail::spawn_slot;
  using sched::public_words;
  t.field<hot_words>("hot.bottom", &hot_words::bottom);
  t.field<hot_words>("hot.in_runtime", &hot_words::in_runtime);
  t.add("slot", sizeof(spawn_slot));
  t.field<spawn_slot>("slot.sp", &spawn_slot::sp);
  t.field<spawn_slot>("slot.fp", &spawn_slot::fp);
  t.field<spawn_slot>("slot.extra", &spawn_slot::extra);
  t.field<spawn_slot>("slot.record", &spawn_slot::record);
  t.field<public_words>("words.top", &public_words::top);
  t.field<public_words>("words.split", &public_words::split);
  t.field<public_words>("words.live", &public_words::live);
  t.field<public_words>("words.pid", &public_words::pid);
  t.field<public_words>("words.mailbox", &public_words::mailbox);
  t.field<public_words>("words.ready_head", &public_words::ready_head);
}

void add_objects(table& t) noexcept {
  using sched::image;
  using sched::object;
  using sched::record;
  t.field<object>("object.kind", &object::kind);
  t.field<object>("object.freed", &object::freed);
  t.field<object>("object.next", &object::next);
  t.add("kind.record", static_cast<std::uint64_t>(sched::object_kind::record));
  t.add("kind.image", static_cast<std::uint64_t>(sched::object_kind::image));
  t.field<record>("record.state", &record::state);
  t.field<record>("record.spawned_at", &record::spawned_at);
  t.add("state.none", sched::state_none);
  t.add("state.done", sched::state_done);
  t.add("state.detached", sched::state_detached);
  t.add("state.bits", sched::state_bits);
  t.add("image", sizeof(image));
  t.field<image>("image.sp", &image::sp);
  t.field<image>("image.fp", &image::fp);
  t.field<image>("image.extra", &image::extra);
  t.field<image>("image.low", &image::low);
  t.field<image>("image.top", &image::top);
  t.field<image>("image.own_record", &image::own_record);
  t.field<image>("image.waiting_for", &image::waiting_for);
  t.field<image>("image.next", &sched::queue_link::next);
  t.field<image>("image.parked_at", &image::parked_at);
  t.add("fresh.image", sched::fresh_thread::image_at);
  t.field<sched::fresh_thread>("fresh.entry", &sched::fresh_thread::entry);
  t.field<image>("image.fork", &image::fork);
  t.field<image>("image.where", &image::where);
  t.field<detail::place>("place.file", &detail::place::file);
  t.field<detail::place>("place.function", &detail::place::function);
  t.field<detail::place>("place.line", &detail::place::line);
}

/// Global memory: docs/protocols/move.md, src/gas/words.hpp.
void add_global(table& t, const launch& what) noexcept {
  using gas::descriptor;
  using gas::place_words;
  const gas::space& s = what.global_space;
  t.add("global", reinterpret_cast<std::uint64_t>(what.global.base()));
  t.add("global_bytes", s.bytes);
  t.add("global.local", s.local_low);
  t.add("global.local_bits", s.local_bits);
  t.add("global.homes", s.homes);
  t.add("global.shared", s.shared_low);
  t.add("global.granule_bits", gas::space::granule_bits);
  t.add("global.directory", s.directory_low);
  t.add("global.words", gas::space::words_low);
  t.field<gas::host_words>("host.generation", &gas::host_words::generation);
  t.field<gas::host_words>("host.next_granule", &gas::host_words::next_granule);
  t.add("descriptor", sizeof(descriptor));
  t.field<descriptor>("descriptor.state", &descriptor::state);
  t.field<descriptor>("descriptor.generation", &descriptor::generation);
  t.field<descriptor>("descriptor.first", &descriptor::first);
  t.field<descriptor>("descriptor.bytes", &descriptor::bytes);
  t.field<descriptor>("descriptor.block", &descriptor::block_bytes);
  t.field<descriptor>("descriptor.blocks", &descriptor::blocks);
  t.field<descriptor>("descriptor.table", &descriptor::table);
  t.field<descriptor>("descriptor.move", &descriptor::move_bytes);
  t.field<descriptor>("descriptor.what", &descriptor::what);
  t.field<descriptor>("descriptor.home", &descriptor::home);
  t.add("moved_words", sizeof(gas::moved_words));
  t.add("place", sizeof(place_words));
  t.field<place_words>("place.owner", &place_words::owner);
  t.field<place_words>("place.local", &place_words::local);
  t.field<place_words>("place.near", &place_words::near);
  t.field<place_words>("place.far", &place_words::far);
}

/// The heap that workers share: src/heap/layout.hpp, record.hpp.
void add_shared_heap(table& t, const launch& what) noexcept {
  using heap::common, heap::part, heap::site;
  t.add("shared", reinterpret_cast<std::uint64_t>(what.heap != nullptr ? what.heap->base() : nullptr));
  t.field<common>("common.table", &common::table);
  t.field<common>("common.spans", &common::spans);
  t.field<common>("common.parts", &common::parts);
  t.field<common>("common.part_count", &common::part_count);
  t.field<common>("common.fresh", &common::fresh);
  t.field<common>("common.recorded", &common::recorded);
  t.add("mains", heap::mains_count);
  t.add("span_bits", heap::span_bits);
  t.add("entry", sizeof(heap::span));
  t.field<heap::span>("entry.owner", &heap::span::owner);
  t.field<heap::span>("entry.block_bytes", &heap::span::block_bytes);
  t.field<heap::span>("entry.spans", &heap::span::spans);
  t.field<heap::span>("entry.kind", &heap::span::kind);
  t.field<heap::span>("entry.size_class", &heap::span::size_class);
  t.field<heap::span>("entry.free", &heap::span::free);
  t.field<heap::span>("entry.fresh", &heap::span::fresh);
  t.add("part", sizeof(part));
  t.field<part>("part.found", &part::found);
  t.add("part.found_bytes", sizeof(part::foreign));
  t.field<part>("part.returned", &part::returned);
  t.add("records", sizeof(heap::allocations));
  t.add("record.site_bits", heap::record::site_bits);
  t.add("site", sizeof(site));
  t.field<site>("site.callers", &site::callers);
}

}  // namespace

void describe_to_debuggers(const launch& what, std::uint64_t worker) noexcept {
  godwit_debug_.entries = 0;  // a debugger may look at any time
  godwit_debug_.version = debug_version;
  const char* policy = detail::facts_of(what.opts).name;
  const std::size_t room = sizeof godwit_debug_.policy, length = std::strlen(policy);
  for (std::size_t i = 0; i < room; ++i)
    godwit_debug_.policy[i] = i < length && i + 1 < room ? policy[i] : '\0';
  table t;
  add_places(t, what, worker);
  add_deque(t);
  add_objects(t);
  add_global(t, what);
  add_shared_heap(t, what);
  godwit_debug_.entries = t.used();
}

}  // namespace godwit::runtime
