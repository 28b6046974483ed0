// See segments.hpp.
#include "sched/segments.hpp"

namespace godwit::sched {

using base::unexposed;

ref segments::make() noexcept {
  const unexposed inside;
  auto* s = static_cast<segment*>(heap_.allocate(object_kind::segment, sizeof(segment)));
  s->before = s->behind = s->views = 0;
  s->state = segment_runs;
  return here_.ref_of(s);
}

ref segments::make_behind(ref s) noexcept {
  const ref made = make();
  list().insert(made, s);
  return made;
}

ref segments::make_first(ref& s) noexcept {
  const ref child = make();
  const ref rest = make();
  const auto all = list();
  all.lock();
  if (all.at(s).views == 0) {  // nothing of it comes before the child
    all.link(child, all.at(s).before);
    all.unlock();
    const unexposed inside;
    records_.free(rest);
    return child;
  }
  all.link(rest, s);
  all.link(child, s);
  all.unlock();
  s = rest;
  return child;
}

ref segments::begin_list(ref origin) noexcept {
  const ref begin = make(), s = make();
  const auto all = list();
  all.at(begin).state = list_begins | origin;
  all.lock();
  all.link_last(begin);
  all.link_last(s);
  all.unlock();
  return s;
}

/// With the list's lock: a segment beside @p s that has ended, or 0.
ref segments::ended_neighbour(ref s, bool& before) const noexcept {
  const auto all = list();
  const segment& own = all.at(s);
  before = own.before != 0 && all.at(own.before).state == segment_ended;
  if (before) return own.before;
  return own.behind != 0 && all.at(own.behind).state == segment_ended ? own.behind : 0;
}

/// With the list's lock. Gives back the begin of its part of the list if that is empty now: both are to be
/// freed.
ref segments::remove(ref s) noexcept {
  const auto all = list();
  const ref before = all.at(s).before, behind = all.at(s).behind;
  GODWIT_ASSERT(before != 0, "a part of the list begins before each segment");
  all.unlink(s);
  if (!begins_list(all.at(before)) || (behind != 0 && !begins_list(all.at(behind)))) return 0;
  all.unlink(before);
  return before;
}

void segments::free_removed(ref s, ref begin) noexcept {
  const unexposed inside;
  records_.free(s);
  if (begin == 0) return;
  const ref origin = origin_of(list().at(begin));
  records_.free(begin);
  if (origin != 0) ended_(origin);
}

void segments::end(ref s) noexcept {
  GODWIT_ASSERT(here_.is_near(s), "a thread has a segment of its host");
  const auto all = list();
  GODWIT_ASSERT(all.at(s).state == segment_runs, "a segment ends once");
  bool merges = false;
  ref begin = 0;
  for (;;) {
    bool before;
    all.lock();
    const ref other = ended_neighbour(s, before);
    if (other == 0) break;  // SE2: and marked with the same lock
    if (!merges) {          // the locks in their order: this one first
      all.unlock();
      lock_merges();
      merges = true;
      continue;
    }
    all.unlink(other);
    all.unlock();
    const ref both = before ? other : s;
    merge(both, before ? s : other);
    std::swap(all.at(s).views, all.at(both).views);
    const unexposed inside;
    records_.free(other);
  }
  const bool empty = all.at(s).views == 0;
  if (empty)
    begin = remove(s);
  else
    all.at(s).state = segment_ended;
  all.unlock();
  if (merges) unlock_merges();
  if (empty) free_removed(s, begin);
}

void segments::discard(ref s) noexcept {
  const auto all = list();
  all.lock();
  all.unlink(s);
  all.unlock();
  const unexposed inside;
  records_.free(s);
}

/// SE6: all views into @p left 's. The caller has the lock of merges, and both segments.
void segments::merge(ref left, ref right) noexcept {
  const auto all = list();
  for (ref r = std::exchange(all.at(right).views, 0), next; r != 0; r = next) {
    view& v = view_at(r);
    next = v.next;
    if (const ref l = *link_of(left, v.reducer)) {
      v.type->merge(value_of(view_at(l)), value_of(v));
      free_view(r);
    } else {
      v.next = all.at(left).views;
      all.at(left).views = r;
    }
  }
}

/// Where the list of views of @p s names that of @p reducer, or ends.
ref* segments::link_of(ref s, std::uint64_t reducer) const noexcept {
  ref* link = &list().at(s).views;
  while (*link != 0 && view_at(*link).reducer != reducer) link = &view_at(*link).next;
  return link;
}

ref segments::make_view(std::uint64_t reducer, const detail::view_type& type) {
  void* const value = type.bytes == 0 ? type.make(nullptr) : nullptr;
  const unexposed inside;
  auto* v = static_cast<view*>(heap_.allocate(object_kind::view, sizeof(view) + type.bytes));
  v->next = 0;
  v->reducer = reducer;
  v->type = &type;
  v->elsewhere = value;
  if (value == nullptr) type.make(v + 1);
  return here_.ref_of(v);
}

void segments::add(ref s, ref view) noexcept {
  const auto all = list();
  all.lock();
  view_at(view).next = std::exchange(all.at(s).views, view);
  all.unlock();
}

void segments::free_view(ref r) noexcept {
  view& v = view_at(r);
  v.type->destroy(value_of(v));
  const unexposed inside;
  records_.free(r);
}

std::vector<segments::item> segments::take(std::uint64_t reducer, wanted what) noexcept {
  const auto all = list();
  const bool positions = what == wanted::positions;
  std::vector<item> found;
  std::vector<std::pair<ref, ref>> removed;
  all.lock();
  for (ref s = all.first(), next; s != 0; s = next) {
    segment& own = all.at(s);
    next = own.behind;
    if (begins_list(own)) {
      if (positions) found.push_back({0, origin_of(own), 0, false});
      continue;
    }
    ref* const link = link_of(s, reducer);
    const ref v = *link;
    const bool ended = own.state == segment_ended;
    const bool owned = v != 0 && (what == wanted::end || (what == wanted::values && ended));
    if (v != 0 || (positions && !ended)) found.push_back({s, 0, v, owned});
    if (!owned) continue;
    *link = view_at(v).next;
    if (ended && own.views == 0) removed.emplace_back(s, remove(s));
  }
  all.unlock();
  for (const auto& [s, begin] : removed) free_removed(s, begin);
  return found;
}

}  // namespace godwit::sched
