// See site.hpp.
#include "sched/site.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/valgrind.hpp"

namespace godwit::sched {

using transport::index;

void site::init(const worker_setup& setup) noexcept {
  memory = setup.memory;
  me = setup.me;
  shape = *setup.job;
  workers = shape.workers;
  near = memory->near();
  opts = *setup.opts;
  if (shape.in_process && !shape.takes_turns)
    opts.check_frames = false;  // every address means the same everywhere
  hooks = setup.hooks;
  exceptions = context::exceptions_here();
  forced = opts.force_steal;
  uniform = opts.victims == choice::victims::uniform;
  GODWIT_ASSERT(near.holds(me) && near.first + near.count <= workers, "a worker is one of its host's");
  const bool spare = index(me) >= workers - shape.spares;
  crowded = spare || near.count - shape.spares > setup.cpus;

  const auto& l = memory->where();
  auto* all = reinterpret_cast<segment_words*>(memory->common() + l.words);
  GODWIT_ASSERT((reinterpret_cast<std::uintptr_t>(all) & (alignof(segment_words) - 1)) == 0,
                "the workers' words are aligned");
  words = &all->worker;
  job = &own_host_words()->job;
  far = &all->far;
  node = &memory->at(worker_no{near.first}, own_host_words())->node;
  root = root_record(l);
  net.init(*memory);
  words->pid.store(static_cast<std::uint64_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  region_low = reinterpret_cast<std::uintptr_t>(memory->stacks());
  region_high = used_from = region_low + l.stack_bytes;
  if (base::on_valgrind() && shape.stacks == nullptr) base::valgrind_stack(region_low, region_high);
}

}  // namespace godwit::sched
