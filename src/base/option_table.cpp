// The options table: one row per field of godwit::options. See options.hpp.
#include "base/options.hpp"

#include <godwit/detail/policy_facts.hpp>

#include <iterator>

namespace godwit::base {
namespace {

constexpr option_info::words policy_names() {
  option_info::words names;
  static_assert(detail::span_row <= std::tuple_size_v<option_info::words>, "more words (options.hpp)");
  for (std::size_t i = 0; i < detail::span_row; ++i) names[i] = detail::policy_table[i].name;
  return names;
}

using enum option_group;

// clang-format off
constexpr option_info table[] = {
    {.name = "workers", .group = everyday, .field = &options::workers, .what = "a number of workers",
     .help = "workers to start",
     .low = 1, .high = (1 << 24) - 1, .zero = "one per usable CPU; under MPI one per rank"},
    {.name = "substrate", .group = everyday, .field = &options::substrate, .what = "a substrate",
     .help = "where workers live: forked processes of this machine, threads of this process, the ranks "
             "that mpirun or srun started, or a simulated machine (docs/scale.md)",
     .choices = {"auto", "processes", "threads", "mpi", "sim"}},
    {.name = "spare_workers", .group = everyday, .field = &options::spare_workers,
     .what = "a number of workers",
     .help = "substrate threads: workers besides, woken while all others block in system calls or compute "
             "for long and threads are ready",
     .low = 0, .high = 1024},
    {.name = "stack_bytes", .group = memory, .field = &options::stack_bytes, .what = "a size",
     .help = "size of the stack region of each worker, shared by all threads it runs (virtual until touched)",
     .unit = option_unit::bytes, .low = 64 * KiB, .high = 256 * GiB},
    {.name = "thread_stack_bytes", .group = memory, .field = &options::thread_stack_bytes, .what = "a size",
     .help = "substrate threads: stack of each thread but the root's, rounded up to a power of two (virtual "
             "until touched)",
     .unit = option_unit::bytes, .low = 16 * KiB, .high = 1024 * MiB},
    {.name = "heap_bytes", .group = memory, .field = &options::heap_bytes, .what = "a size",
     .help = "per worker: room for suspended stacks, join records and results (virtual until touched)",
     .unit = option_unit::bytes, .low = MiB, .high = 512 * GiB},
    {.name = "bind", .group = everyday, .field = &options::bind, .what = "a way to bind workers",
     .help = "cores: worker i stays on the i-th usable CPU",
     .choices = {"none", "cores"}},
    {.name = "spin_us", .group = everyday, .field = &options::spin_us, .what = "a time in microseconds",
     .help = "how long an idle worker looks for work before it sleeps",
     .unit = option_unit::microseconds, .low = 0, .high = 10'000'000},
    {.name = "expose_signal", .group = everyday, .field = &options::expose_signal, .what = "a switch",
     .help = "starving workers may interrupt one that computes without spawning"},
    {.name = "force_steal", .group = testing, .field = &options::force_steal,
     .what = "a kind of forced steal",
     .help = "testing: who is made to leave at every spawn (1 = random, 0 = none)",
     .choices = {"none", "parents", "children", "random"}, .zero_one = {"none", "random"}},
    {.name = "rebalance", .group = hosts, .field = &options::rebalance, .what = "a switch",
     .help = "several hosts: idle workers fetch parts of movable memory, with threads that wait for them"},
    {.name = "force_move", .group = testing, .field = &options::force_move, .what = "a kind of forced move",
     .help = "testing: distributed memory is movable, and accesses move it (1 = random, 0 = none)",
     .choices = {"none", "random"}, .zero_one = {"none", "random"}},
    {.name = "delay_us", .group = testing, .field = &options::delay_us, .what = "a time in microseconds",
     .help = "testing: random delays of up to this long inside the protocols",
     .unit = option_unit::microseconds, .low = 0, .high = 1'000'000},
    {.name = "seed", .group = testing, .field = &options::seed, .what = "a seed",
     .help = "of victim selection, forced steals and delays",
     .low = 1, .zero = "drawn anew"},
    {.name = "heap", .group = memory, .field = &options::heap, .what = "a choice",
     .help = "memory that threads allocate (malloc, new): one heap for all workers of a host, so that what "
             "owns memory migrates (shared), or each worker's own (private); auto: shared where the program "
             "has no malloc of its own (docs/heap.md)",
     .choices = {"auto", "private", "shared"}},
    {.name = "private_heap", .group = memory, .field = &options::private_heap, .what = "a switch",
     .help = "keep workers' heaps apart, so that a heap pointer that migrated is noticed"},
    {.name = "check_frames", .group = debugging, .field = &options::check_frames, .what = "a switch",
     .help = "threads that captured locals of their ancestors can read them wherever they go, and writes to "
             "them that would be lost end the run"},
    {.name = "way", .group = hosts, .field = &options::way, .what = "a way to other hosts",
     .help = "how memory of other hosts is reached (docs/cluster.md); auto measures and chooses",
     .choices = {"auto", "rma", "server", "assist", "am"}},
    {.name = "companions", .group = hosts, .field = &options::companions, .what = "a number of companions",
     .help = "way=server: how many companions of a host carry out requests, each for its neighbours",
     .low = 1, .high = 4096},
    {.name = "hosts", .group = hosts, .field = &options::hosts, .what = "a division into hosts",
     .help = "which ranks share memory: those of one host, or (testing) each only with itself",
     .choices = {"auto", "ranks"}},
    {.name = "victims", .group = hosts, .field = &options::victims, .what = "a choice of victims",
     .help = "whom idle workers steal from: workers of their own host first, or all alike",
     .choices = {"near", "uniform"}},
    {.name = "empty_check", .group = testing, .field = &options::empty_check, .what = "a switch",
     .help = "look whether a victim has something before locking its queue"},
    {.name = "far_steal", .group = hosts, .field = &options::far_steal, .what = "a kind of steal",
     .help = "between hosts: call (one request does all) or words (one-sided, step by step; always so with "
             "way=rma)",
     .choices = {"call", "words"}},
    {.name = "rma_atomics", .group = hosts, .field = &options::rma_atomics, .what = "a switch",
     .help = "way=rma: use MPI's atomics also on words that CPUs change (only where both are coherent)"},
    {.name = "mpi", .group = hosts, .field = &options::mpi, .what = "an MPI component",
     .help = "openmpi, mpich or the path of a component; empty: the one that fits the launcher"},
    {.name = "randomize", .group = hosts, .field = &options::randomize, .what = "a switch",
     .help = "under MPI: leave address randomisation on (the environment variable only; threads cannot "
             "migrate then)"},
    {.name = "output", .group = hosts, .field = &options::output, .what = "a choice of ranks",
     .help = "under MPI: whose standard output is shown outside run (the environment variable only)",
     .choices = {"first", "all"}},
    {.name = "quiet", .group = everyday, .field = &options::quiet, .what = "a switch",
     .help = "do not print the line that says how hosts are connected"},
    {.name = "policy", .group = testing, .field = &options::policy, .what = "a policy",
     .help = "how threads are stolen, joined and freed (docs/policies.md); others than greedy are for "
             "comparison",
     .choices = policy_names()},
    {.name = "stats", .group = everyday, .field = &options::stats, .what = "a switch",
     .help = "print a table of scheduler counters at the end"},
    {.name = "stats_json", .group = everyday, .field = &options::stats_json, .what = "a file",
     .help = "write the counters as JSON to this file at the end (-: standard output)"},
    {.name = "trace", .group = everyday, .field = &options::trace, .what = "a file",
     .help = "write what the workers did to this file: open it at ui.perfetto.dev or with godwit-report"},
    {.name = "trace_bytes", .group = debugging, .field = &options::trace_bytes, .what = "a size",
     .help = "memory for events, per worker; when it is full the oldest events are dropped",
     .unit = option_unit::bytes, .low = 64 * KiB, .high = 64ull << 30},
    {.name = "trace_workers", .group = debugging, .field = &options::trace_workers,
     .what = "a number of workers",
     .help = "trace so many workers, evenly spread, worker 0 among them; 0: all. What others do is missing",
     .low = 0, .high = (1 << 24) - 1},
    {.name = "span", .group = debugging, .field = &options::span, .what = "a switch",
     .help = "measure work and span: every spawn takes a slow path (one host, policy greedy)"},
    {.name = "global_bytes", .group = memory, .field = &options::global_bytes, .what = "a size",
     .help = "addresses for the global memory of the whole run (virtual until touched)",
     .unit = option_unit::bytes, .low = 256 * MiB, .high = 64 * TiB},
    {.name = "global_limit", .group = memory, .field = &options::global_limit, .what = "a size",
     .help = "global memory that may be allocated on one host; more throws global_bad_alloc",
     .unit = option_unit::bytes, .low = MiB, .zero = "nine tenths of the memory that is available at start"},
    {.name = "cache_bytes", .group = memory, .field = &options::cache_bytes, .what = "a size",
     .help = "per host: copies of global memory of other hosts",
     .unit = option_unit::bytes, .low = MiB, .high = TiB},
    {.name = "translations", .group = hosts, .field = &options::translations,
     .what = "a number of translations",
     .help = "remember who has so many parts of other hosts' movable memory, as bounded directories do",
     .low = 1, .high = 1 << 24, .zero = "flat: of all"},
    {.name = "translations_replace", .group = hosts, .field = &options::translations_replace,
     .what = "a choice",
     .help = "which translation is forgotten for another: the least recently used, or any",
     .choices = {"lru", "random"}},
    {.name = "translations_lock", .group = hosts, .field = &options::translations_lock, .what = "a choice",
     .help = "whose translations are those: each worker's own, or a host's together, under one or many locks",
     .choices = {"none", "single_lock", "concurrent"}},
    {.name = "directory", .group = hosts, .field = &options::directory, .what = "a directory",
     .help = "several hosts: who knows which host has a part of movable memory: the hosts (software; "
             "datagrams: the same, but small accesses go by UDP), or a switch, by whose rules small accesses "
             "go: relay (a process that the first rank starts), xdp or ovs (docs/switch.md)",
     .choices = {"software", "datagrams", "relay", "xdp", "ovs"}},
    {.name = "switch_at", .group = hosts, .field = &options::switch_at, .what = "an address",
     .help = "directory xdp, ovs: the switch, such as 10.0.0.254 or 10.0.0.254:4700"},
    {.name = "net_interface", .group = hosts, .field = &options::net_interface, .what = "a network interface",
     .help = "for datagrams between hosts; empty: the first one that is up"},
    {.name = "switch_faults", .group = testing, .field = &options::switch_faults, .what = "a percentage",
     .help = "testing: so many of a hundred datagrams are lost by the switch, as many doubled, as many "
             "delayed",
     .low = 0, .high = 50},
    {.name = "check_global", .group = debugging, .field = &options::check_global, .what = "a choice",
     .help = "notice misuse of global memory: freed or foreign addresses, conflicting checkouts, leaks; "
             "auto: in debug builds",
     .choices = {"auto", "on", "off"}, .zero_one = {"off", "on"}},
    {.name = "check_heap", .group = debugging, .field = &options::check_heap, .what = "a switch",
     .help = "report what threads allocated in the heap that workers share and nobody freed, with the lines; "
             "in the environment also what they changed of main's memory (docs/heap.md)"},
    {.name = "sim_machine", .group = simulation, .field = &options::sim_machine, .what = "a machine",
     .help = "substrate sim: a machine that the library knows, or the path of its file; and what is "
             "different, such as wisteria,latency_ns=500 (docs/scale.md)"},
    {.name = "sim_hosts", .group = simulation, .field = &options::sim_hosts, .what = "a number of hosts",
     .help = "substrate sim: the workers are spread over so many simulated hosts",
     .low = 1, .high = 1 << 20},
    {.name = "sim_seed", .group = simulation, .field = &options::sim_seed, .what = "a seed",
     .help = "substrate sim: of everything that chance decides; the same seed gives the same run",
     .low = 1},
    {.name = "sim_clock", .group = simulation, .field = &options::sim_clock, .what = "a clock",
     .help = "substrate sim: who says how long user code takes: the program, by godwit::sim::charge; the "
             "clock of this machine; or its counter of instructions",
     .choices = {"charged", "measured", "counted"}},
    {.name = "sim_jitter_ns", .group = simulation, .field = &options::sim_jitter_ns,
     .what = "a number of nanoseconds",
     .help = "substrate sim: each wait and each message between hosts takes up to so much longer, by chance: "
             "another schedule for each seed",
     .low = 0, .high = 1'000'000'000},
    {.name = "sim_limit_ms", .group = simulation, .field = &options::sim_limit_ms,
     .what = "a number of milliseconds",
     .help = "substrate sim: a run that is not over after so much virtual time ends with an error",
     .low = 1, .high = 1'000'000'000, .zero = "no limit"},
    {.name = "sim_lead_ns", .group = simulation, .field = &options::sim_lead_ns,
     .what = "a number of nanoseconds",
     .help = "substrate sim: how far the time of a thread that computes may be ahead of the others: fewer "
             "turns, and requests for work that are noticed late",
     .low = 0, .high = 1'000'000'000},
    {.name = "sim_faults", .group = simulation, .field = &options::sim_faults, .what = "a list of faults",
     .help = "substrate sim: what else happens, by chance: delay, stall, slow, crash, spurious, late, small, "
             "with commas between, or all (but crash; docs/scale.md)"},
};
// clang-format on

// Does not compile when options gets a field: give that field a row above, then count it here.
[[maybe_unused]] constexpr std::size_t field_count(const options& o) {
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                                f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32,
                                f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43, f44, f45, f46, f47,
                                f48, f49, f50, f51, f52, f53, f54, f55] = o;
  return 55;
}
static_assert(std::size(table) == 55, "every field of godwit::options has exactly one row");

}  // namespace

std::span<const option_info> option_table() noexcept { return table; }

}  // namespace godwit::base
