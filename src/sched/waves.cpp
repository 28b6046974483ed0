// See waves.hpp.
#include "sched/waves.hpp"

#include "sched/far_calls.hpp"

namespace godwit::sched {

bool waves::has_step() const noexcept {
  const node_words& node = *here_.node;
  if (!all_idle(node.idle.load(std::memory_order_seq_cst))) return false;
  switch (node.wave.load(std::memory_order_seq_cst)) {
    case wave_passed_on:
      return answers_missing(node.answers.load(std::memory_order_seq_cst)) == 0;
    case wave_asked:
      return true;
    default:
      return here_.shape.my_host == 0;
  }
}

void waves::begin() noexcept {
  node_words& node = *here_.node;
  std::uint32_t below = 0;
  here_.shape.each_host_below(0, [&](std::uint32_t) { ++below; });
  const auto reset = [&] { node.answers.store(below, std::memory_order_seq_cst); };
  const bool late = base::planted("nodes.answers_are_reset_late");
  if (!late) reset();  // IN3
  node.wave.store(wave_passed_on, std::memory_order_seq_cst);
  here_.shape.each_host_below(0, [&](std::uint32_t host) {
    here_.net.far().cast(worker_no{here_.shape.hosts[host].first}, call_no::wave, 0);
  });
  if (late) reset();
}

/// The wave is over here.
waves::outcome waves::answer(bool unclean, std::uint64_t letters) noexcept {
  here_.node->wave.store(wave_none, std::memory_order_seq_cst);  // IN3
  const std::uint64_t all = wave_answer(unclean, letters);
  if (here_.shape.my_host != 0) {
    const transport::shm::near_range& above = here_.shape.hosts[here_.shape.host_above()];
    here_.net.far().cast(worker_no{above.first}, call_no::wave_answer, all);
    return outcome::under_way;
  }
  const bool clean = (!unclean || base::planted("nodes.one_wave_is_enough")) &&
                     (letters_in(all) == 0 || base::planted("nodes.letters_are_not_summed"));
  return clean ? outcome::clean : outcome::unclean;
}

}  // namespace godwit::sched
