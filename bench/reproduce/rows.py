"""The rows of scripts/reproduce --table: everything that the papers describe, and what decides each of them here.

A row passes if all that it names does: tests (patterns for ctest -R), experiments (plan.py; what is asked of them is in claims.py), and parts of
bench/scale.py, the papers' machines simulated. A new test,
experiment or part is one more word in a row here. Kinds: core, a part of the library; base, a baseline of the papers; bench, an experiment.
"""

import dataclasses
import os


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    kind: str
    what: str
    tests: tuple = ()
    experiments: tuple = ()
    scale: tuple = ()

    @property
    def regex(self):
        return "|".join(self.tests)

    def note(self):
        """What its verdict does not say."""
        if self.name == "M8" and not os.environ.get("CHPL_HOME"):
            return "layer, without the compiler"
        return "model" if self.scale else ""


def core(name, what, *tests, **more):
    return Row(name, "core", what, tests, **more)


def base(name, what, *tests, **more):
    return Row(name, "base", what, tests, **more)


def bench(name, what, *scale, **more):
    return Row(name, "bench", what, experiments=(name,), scale=scale, **more)


ROWS = (
    core("U1", "spawn and join in ordinary C++", r"^api_(spawn|invoke)\.", r"^docs\.programs$", r"^examples\.fib$"),
    core("U2", "one root thread; threads migrate at spawn and at join, after they have started too",
         r"^api_migration\.", r"^api_by_reference\.", r"^api_run\.run\.", r"^stress_stress\."),
    core("U3", "child first; the parent's continuation is queued, thieves take the oldest",
         r"^sched_deque\.", r"^api_spawn\.spawn\.unforced_on_one_worker_goes_child_first$", r"^sched_exposure\."),
    core("U4", "uni-address region: one address in every worker, stacks below each other, copied out at a suspension",
         r"^stack_stack\.", r"^transport_segment\.", r"^context_(switch|fork)\.", r"^api_migration\.depth\."),
    core("U5", "suspended stacks anywhere, in memory that others reach",
         r"^sched_heap\.", r"^transport_far\.", r"^api_fault\.fault\.heap_full_of_suspended_threads$"),
    core("U6", "one-sided steal word by word; the owner takes no lock unless there is a conflict",
         r"^sched_deque\.deque/deque_race\.", r"^sched_far_(thief|calls)\.", r"^mpi\.far\.", r"^models$", r"^sim\.rma\.api_(spawn|migration)$"),
    base("U7", "crude uni-address: a copy at every switch", r"^api_policy\.", r"^sim\.rma\.api_policy$", r"^bench\.(fib|btc)$"),
    base("U8", "iso-address: an address of its own for every stack", r"^api_(policy|iso)\.", r"^stack_pool\.", r"^sim_iso\.", r"^sim\.iso\.api_policy$"),
    core("U9", "the empty check can be switched off", r"^no_empty_check\."),
    core("U10", "remote fetch-and-add: in hardware, by a server, by a companion, by messages handled at spawns",
         r"^sim\.(rma|server|assist|am)\.api_(spawn|future)$", r"^transport_far(_word)?\.", r"^mpi\.far\."),
    bench("U11", "creating a task, in cycles"),
    bench("U12", "overhead over serial code"),
    bench("U13", "a steal, operation by operation", "steals"),
    bench("U14", "totals, stacks and efficiency of task trees", "programs"),
    bench("U15", "messages handled at spawns, and steals, against P", "messages"),
    bench("U16", "use of address space"),
    core("M1", "threads, mutexes, condition variables, barriers, thread-local data, by the million",
         r"^threads_(thread|mutex|wait|specific|memory|overflow)\.", r"^c_api"),
    core("M2", "blocking I/O suspends the thread, not the worker", r"^io_", r"^threads_spare\.", r"^examples\.echo_server$"),
    core("M3", "pthread programs unchanged, preloaded or linked", r"^pthread\."),
    core("M4", "context switch in assembly, by ucontext and by setjmp", r"^context_(switch|fork)\.", r"^context\.variants_do_not_mix", r"^bench\.contexts"),
    bench("M5", "fib on each variant of the context switch"),
    bench("M6", "creating and joining one thread, beside other libraries"),
    bench("M7", "fib, quicksort and matrix multiplication over plain calls"),
    core("M8", "tasking layer of Chapel", r"^chapel\."),
    core("C1", "greedy join", r"^sched_records\.", r"^api_future\.", r"^sched_world\."),
    base("C2", "stalling join", r"^api_policy\.", r"^sched_ready_queue\.", r"^sim\.(rma|server)\.api_policy$"),
    core("C3", "what others freed is collected by its owner", r"^sched_heap\.heap\.", r"^api_policy\.policy\.what_is_given_back"),
    base("C4", "locked queue of what others freed", r"^sched_(heap|records)\.", r"^api_policy\.policy\.what_is_given_back", r"^sim\.rma\.api_policy$"),
    base("C5", "child stealing, run to completion", r"^api_policy\.", r"^sim\.(rma|server)\.api_policy$", r"^bench\.pfor$"),
    base("C6", "child stealing, full threads", r"^api_policy\.", r"^stack_pool\.", r"^sim\.(rma|server)\.api_policy$"),
    core("C7", "futures, for one consumer and for many", r"^api_future\.", r"^bench\.lcs$", r"^examples\.wavefront$"),
    bench("C8", "PFor, RecPFor: efficiency against size, five policies", "sizes", "loops"),
    bench("C9", "PFor, RecPFor: joins, steals, latencies, sizes", "loops"),
    bench("C10", "busy workers and ready joins over time", "busy"),
    bench("C11", "unbalanced tree search", "trees"),
    bench("C12", "longest common subsequence with futures", "lcs"),
    bench("C13", "what the joining strategies gain", "loops"),
    core("G1", "64-bit global addresses: at least 2^20 homes, blocks of 4 GiB and more",
         r"^gas_space\.", r"^global_ptr\.", r"^gas_allocator\.Allocator\.(ManyHomes|BlocksOfMoreThan4GiB)$"),
    core("G2", "allocation: local, cyclic, blocked, the user's own distribution", r"^gas_(allocator|arena|extents)\.", r"^global_(allocate|array|misuse)\."),
    core("G3", "put, get, asynchronous, fences, atomics, pins, local pointers",
         r"^gas_access\.", r"^global_(access|atomic|begun|checkout|litmus)\.", r"^global_spawn_at\.Pin\."),
    core("G4", "moves of blocks, linearizable for what is addressed to them",
         r"^global_(move|move_faults|linearizable|movable|on_move)\.", r"^models$", experiments=("G4",)),
    core("G5", "directory at homes, translations without bound or random or LRU, forwarding",
         r"^gas_(directory|places|translations)\.", r"^global_hints\.", r"^sim\.server\.global_hints$"),
    core("G6", "threads sent to data, control objects, quiescence", r"^global_(spawn_at|control|group|team)\."),
    core("G7", "rebalancing by policies, by use and by weights; attributes", r"^global_(rebalance|freeze|on_move)\.", r"^mpi\.frozen\.", r"^runtime_balance_plan\.", r"^examples\.rebalance$"),
    core("G8", "directory in the network: the switch finds a block's owner",
         r"^transport_(channel|openflow)\.", r"^mpi\.(\w+\.)*global_routed", r"^mpi\.hosts\.switch\.", r"^mpi\.life\.relay", r"^models$"),
    bench("G9", "a put by what is known of its owner"),
    bench("G10", "random updates, directories of a bounded size"),
    bench("G11", "updates beside moves"),
    bench("G12", "latency, bandwidth and message rate of put and get, by size"),
    bench("G13", "adaptive mesh refinement"),
    bench("G14", "R-MAT: what nodes give away"),
    bench("G15", "NAS Parallel Benchmarks"),
)
BY_NAME = {r.name: r for r in ROWS}
