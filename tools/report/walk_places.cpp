// Where in the program threads wait, spawn and ask other hosts. See walker.hpp.
#include "summary.hpp"
#include "walker.hpp"

namespace godwit::report {

using trace::event;
using trace::kind;

/// Reads from @p c what is behind a suspension or an access: where, and for what. False: nothing is there.
bool read_place(event_cursor& c, place_events& found) {
  bool any = false;
  for (; !c.done(); c.next(), any = true) {
    const event p = *c;
    const auto what = static_cast<kind>(p.what);
    if (what == kind::waits)
      found.what = p.a;
    else if (what == kind::place)
      found.file = p.a, found.function = p.b, found.line = p.other;
    else if (what == kind::callers)
      found.callers.insert(found.callers.end(), {p.a, p.b});
    else
      break;
  }
  return any;
}

/// What a continuation is called of which an event has just been read.
std::uint32_t walker::name_behind(event_cursor c) {
  place_events found;
  return read_place(c, found) ? name_of_code(found.callers) : nothing;
}

/// @p callers: the innermost first.
std::uint32_t walker::name_of_code(const std::vector<std::uint64_t>& callers) {
  const auto [at, is_new] = code_names_.try_emplace(callers, nothing);
  if (!is_new) return at->second;
  for (const std::uint64_t caller : callers) {
    const auto text = r_.strings.find(caller);
    if (text == r_.strings.end() || text->second.empty()) continue;
    const trace::code_text code = trace::code_text_of(text->second);
    return at->second = name_table_.index_of(trace::name_of_place(code.function, code.place), a_.names);
  }
  return nothing;
}

std::uint32_t walker::name_of_place(std::uint32_t place) {
  if (place == nothing) return nothing;
  const waiting_place& p = a_.places[place];
  return name_table_.index_of(trace::name_of_place(p.function, p.file.empty() ? "" : format_place(p)),
                              a_.names);
}

/// What the program itself calls what runs there may have changed.
void walker::rename(std::uint32_t w, std::uint64_t at) {
  const auto text = r_.strings.find(open_.of(w));
  lines_[w].called(at, text == r_.strings.end() ? nothing : name_table_.index_of(text->second, a_.names));
}

void walker::on_stay(std::uint32_t w, const event& e) {
  event_cursor c = cursors_[w];
  place_events found;
  if (!read_place(c, found) || !counts(time(e))) return;
  waiting_place& at = a_.places[place_table_.index_of(found, r_.strings, a_.places)];
  ++at.stays;
}

// And whether the suspension was undone. (Who asks another host for that serves others meanwhile.)
bool walker::cancelled(std::uint32_t w, const event& e, std::uint32_t& place) {
  event_cursor c = cursors_[w];
  place_events found;
  if (read_place(c, found)) place = place_table_.index_of(found, r_.strings, a_.places);
  while (!c.done() && static_cast<kind>((*c).what) == kind::message) c.next();
  return !c.done() && static_cast<kind>((*c).what) == kind::cancel && (*c).a == e.a;
}

void walker::on_access(std::uint32_t w, const event& e) {
  static constexpr const char* names[] = {"get", "put", "atomic"};
  event_cursor c = cursors_[w];
  place_events found;
  found.access = names[std::min<std::size_t>(e.detail, std::size(names) - 1)];
  read_place(c, found);
  const std::uint32_t number = place_table_.index_of(found, r_.strings, a_.places);
  waiting_place& p = a_.places[number];
  const std::uint64_t ns = std::uint64_t{e.duration_ns} * e.bytes;
  p.count += e.bytes;
  p.wait_ns += ns;
  a_.totals[w].access_ns += ns;
  std::uint64_t& now = accesses_[{number, e.other}];
  now += e.bytes;
  if (p.owner == nothing || now > accesses_[{number, p.owner}]) p.owner = e.other;
}

void walker::on_suspend(std::uint32_t w, const event& e) {
  const std::uint64_t at = time(e);
  worker_line& line = lines_[w];
  apply_takings(w, at);
  std::uint32_t place = nothing;
  if (cancelled(w, e, place)) return;
  // its parent in place (1), or what is put on top of it (2)
  const bool goes_on = e.detail == 1 || e.detail == 2;
  if (!line.busy()) {
    if (line.knows_nothing()) {
      line.first_known(at, goes_on);
      if (goes_on) levels(at, +1, 0);
    } else {
      ++a_.odd;
    }
  }
  const wait_for kind = place != nothing ? a_.places[place].kind
                        : e.b != 0       ? wait_for::join
                                         : wait_for::nothing;
  thread_table::wait waiter{.valid = true,
                            .kind = kind,
                            .since = at,
                            .depth = line.depth_at(at),
                            .node = line.last_node(),
                            .place = place,
                            .name = place != nothing ? name_of_place(place) : line.now().name};
  if (threads_.suspend(e.a, e.b, waiter) && kind != wait_for::nothing) levels(at, 0, +1);
  if (kind == wait_for::join && counts(at)) ++a_.totals[w].suspends;
  if (place != nothing && counts(at)) ++a_.places[place].count;
  if (place != nothing && kind != wait_for::join && waited_.emplace(place, threads_.number_of(e.a)).second)
    ++a_.places[place].threads;
  if (goes_on || !line.busy()) return;
  ended(line, at);
  line.lose(at,
            kind == wait_for::join      ? loss::join
            : kind == wait_for::nothing ? loss::yield
                                        : loss::wait,
            place, name_of_place(place), kind);
  levels(at, -1, 0);
}

}  // namespace godwit::report
