// Tests of src/base/launcher, fixed_layout and rank_output: what the launchers' variables say, that ranks
// start themselves anew once and then agree, what is said when they cannot. Launchers are played by their
// variables; tests/mpi/layout_check.sh has the true ones.
// test: timeout=120
#include "base/launcher.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/fixed_layout.hpp"
#include "base/rank_output.hpp"
#include "support/child.hpp"

extern "C" char** environ;

namespace {

using namespace godwit::base;
using kind = launcher::kind;

// ---- what the variables say

launcher read(std::vector<const char*> variables) {
  variables.push_back(nullptr);
  return read_launcher(variables.data());
}

TEST(launcher, plain_start) {
  const launcher l = read({"HOME=/root", "PMI=1", "OMPI_COMM_WORLD=3"});
  EXPECT_EQ(l.what, kind::none);
  EXPECT_EQ(l.size, 1);
  EXPECT_FALSE(l.one_of_several());
  EXPECT_EQ(read_launcher(nullptr).what, kind::none);
}

TEST(launcher, open_mpi) {
  const launcher l = read({"PMIX_RANK=2", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=12",
                           "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=4", "SLURM_STEP_ID=0",
                           "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=3"});
  EXPECT_EQ(l.what, kind::open_mpi);
  EXPECT_EQ(l.rank, 2);
  EXPECT_EQ(l.size, 12);
  EXPECT_EQ(l.local_rank, 0);
  EXPECT_EQ(l.local_size, 4);
  EXPECT_STREQ(l.evidence, "OMPI_COMM_WORLD_SIZE");
  EXPECT_TRUE(l.one_of_several());
}

TEST(launcher, mpich_and_pmi2) {
  const launcher hydra = read({"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"});
  EXPECT_EQ(hydra.what, kind::mpich);
  EXPECT_EQ(hydra.rank, 1);
  EXPECT_EQ(hydra.size, 2);
  EXPECT_EQ(hydra.local_rank, 1);
  EXPECT_EQ(hydra.local_size, 2);
  const launcher srun = read({"PMI_RANK=5", "PMI_SIZE=8", "PMI_FD=9", "SLURM_STEP_ID=3", "SLURM_PROCID=5",
                              "SLURM_LOCALID=1", "SLURM_STEP_NUM_TASKS=8"});
  EXPECT_EQ(srun.what, kind::mpich);
  EXPECT_EQ(srun.rank, 5);
  EXPECT_EQ(srun.local_rank, 1);
  EXPECT_EQ(srun.local_size, -1);
}

TEST(launcher, pmix) {
  const launcher l = read({"PMIX_RANK=3", "PMIX_NAMESPACE=slurm.pmix.7.0", "SLURM_NTASKS=16",
                           "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=3", "SLURM_LOCALID=1"});
  EXPECT_EQ(l.what, kind::pmix);
  EXPECT_EQ(l.rank, 3);
  EXPECT_EQ(l.size, 4);
  EXPECT_EQ(l.local_rank, 1);
  EXPECT_EQ(read({"PMIX_RANK=3", "SLURM_NTASKS=16"}).size, 16);
  const launcher other = read({"PMIX_RANK=0"});
  EXPECT_EQ(other.size, -1);
  EXPECT_TRUE(other.one_of_several());
}

TEST(launcher, slurm) {
  const launcher l = read({"SLURM_STEP_ID=0", "SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=0"});
  EXPECT_EQ(l.what, kind::slurm_without_mpi);
  EXPECT_EQ(l.rank, 2);
  EXPECT_EQ(l.size, 4);
  EXPECT_FALSE(l.one_of_several());
  // The batch script; one task; the batch and the interactive step, whose numbers are special.
  EXPECT_EQ(read({"SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_LOCALID=0"}).what, kind::none);
  EXPECT_EQ(read({"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1"}).what, kind::none);
  for (const char* step : {"SLURM_STEP_ID=4294967291", "SLURM_STEP_ID=4294967290", "SLURM_STEP_ID=batch"})
    EXPECT_EQ(read({step, "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4"}).what, kind::none) << step;
}

TEST(launcher, nonsense_is_none) {
  for (const char* size :
       {"PMI_SIZE=", "PMI_SIZE=x", "PMI_SIZE=-1", "PMI_SIZE=2x", "PMI_SIZE=1", "PMI_SIZE=99999999999"})
    EXPECT_EQ(read({"PMI_RANK=1", size}).what, kind::none) << size;
  EXPECT_EQ(read({"PMI_RANK=1"}).what, kind::none);
  EXPECT_EQ(read({"OMPI_COMM_WORLD_SIZE=3"}).what, kind::none);
}

TEST(launcher, mark_belongs_to_one_job) {
  const char* job[] = {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=5", nullptr};
  char text[128];
  write_rank_mark(text, sizeof text, job, {4711, 0x40});
  const char* same[] = {"PMI_RANK=1", "PMI_SIZE=2", text, "PMI_FD=5", nullptr};
  EXPECT_EQ(read_rank_mark(same).process, 4711);
  EXPECT_EQ(read_rank_mark(same).personality, 0x40u);
  const char* other[] = {"PMI_RANK=1", "PMI_SIZE=2", text, "PMI_FD=6", nullptr};
  EXPECT_EQ(read_rank_mark(other).process, 0);
  EXPECT_EQ(read_rank_mark(job).process, 0);
}

// ---- padding

TEST(padding, brings_different_starts_to_one_size) {
  const auto end = [](std::size_t strings, std::size_t pointers) {
    const start_padding p = padding_for(strings, pointers);
    return std::pair(strings + p.bytes, pointers + p.variables);
  };
  const auto usual = end(2000, 20);
  EXPECT_EQ(usual, std::pair(std::size_t{65536}, std::size_t{512}));
  for (const std::size_t strings : {1500u, 9000u, 40000u})
    for (const std::size_t pointers : {10u, 77u, 300u}) EXPECT_EQ(end(strings, pointers), usual);
  EXPECT_EQ(end(63000, 100).first, 131072u);
  EXPECT_EQ(end(2000, 500), std::pair(std::size_t{65536}, std::size_t{2048}));
  for (std::size_t strings = 100; strings < 2'000'000; strings = strings * 5 / 4)
    for (std::size_t pointers = 2; pointers < 40'000; pointers = pointers * 3 / 2) {
      const start_padding p = padding_for(strings, pointers);
      EXPECT_GE(p.variables, 16u);
      EXPECT_GE(p.bytes, p.variables * sizeof "_GODWIT_PAD=");
      EXPECT_LT(p.bytes / p.variables + 1, 131'072u);  // MAX_ARG_STRLEN
    }
}

// ---- comparing

struct ranks {
  std::vector<rank_layout> all;
  explicit ranks(int n = 3) : all(static_cast<std::size_t>(n)) {
    for (rank_layout& r : all) {
      r.rank = static_cast<int>(&r - all.data());
      r.host[0] = static_cast<char>('a' + r.rank);
      layout& l = r.is;
      l.format = layout::format_now;
      l.randomisation = layout::state::fixed;
      l.page_bytes = 4096;
      l.stack_limit = 8 << 20;
      l.module_count = 3;
      std::strcpy(l.build_id, "abcd");
      std::strcpy(l.kernel, "6.1");
      std::strcpy(l.module_list[1].name, "libfoo.so.1");
      std::strcpy(l.module_list[2].name, "libc.so.6");
      l.module_list[1].base = 0x7f0000001000;
    }
  }
  layout& operator[](std::size_t rank) { return all[rank].is; }
  std::string text() const { return compare_layouts(all); }
};

TEST(compare, equal) {
  ranks r;
  r[2].main_stack = 16;
  std::strcpy(r[1].kernel, "6.2");  // does not matter by itself
  EXPECT_EQ(r.text(), "");
  EXPECT_EQ(compare_main_stacks(std::span(r.all).first(2)), "");
  EXPECT_EQ(compare_main_stacks(r.all),
            "main's locals lie elsewhere in rank 2 (host c) than in rank 0 (host a): threads must not use "
            "references to them; or start all ranks with arguments and environments of about equal length");
}

TEST(compare, says_who_what_and_what_to_do) {
  ranks binary;
  binary[2].program = 1;
  std::strcpy(binary[2].build_id, "ef01");
  EXPECT_EQ(binary.text(),
            "rank 2 (host c) runs another binary than rank 0 (host a): build-id ef01, not abcd; "
            "start the same file on all hosts");
  ranks moved;
  moved[1].modules = 1;
  moved[1].module_list[1].base = 0x7e0000001000;
  EXPECT_EQ(moved.text(),
            "rank 1 (host b) has libfoo.so.1 at 0x7e0000001000, rank 0 (host a) at 0x7f0000001000\n"
            "use the same LD_LIBRARY_PATH, LD_PRELOAD, ulimit -s and kernel on all hosts");
  moved[1].stack_limit = ~0ull;
  EXPECT_NE(moved.text().find("ulimit -s is unlimited there and 8192 in rank 0"), std::string::npos)
      << moved.text();
  ranks version;
  version[1].modules = version[1].module_list[2].build = 1;
  EXPECT_NE(version.text().find("has another build of libc.so.6 than"), std::string::npos) << version.text();
  ranks missing;
  missing[1].modules = missing[1].module_count = 2;
  EXPECT_NE(missing.text().find("rank 0 (host a) has loaded libc.so.6, rank 1 (host b) has not"),
            std::string::npos)
      << missing.text();
  ranks refused;
  refused[2].modules = 1;
  refused[0].randomisation = layout::state::refused;
  std::strcpy(refused[0].detail, "personality: Operation not permitted");
  EXPECT_NE(refused.text().find(
                "could not be switched off in rank 0 (host a): personality: Operation not permitted"),
            std::string::npos)
      << refused.text();
  ranks heap;
  heap[1].heap_start = 4096;
  EXPECT_NE(heap.text().find("rank 1 (host b) has its heap at 0x1000"), std::string::npos) << heap.text();
}

/// What ranks exchange is rank 0's and the first of each reason: the text is the same as if all were there.
TEST(compare, says_the_same_from_those_that_there_is_a_reason_to_name) {
  std::mt19937 random(7);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  int differing = 0;
  for (int round = 0; round < 2000; ++round) {
    ranks r(7);
    for (std::size_t i = 0; i < r.all.size(); ++i) {
      layout& l = r[i];
      if (one_in(5)) l.randomisation = static_cast<layout::state>(random() % 4);
      if (one_in(5)) l.main_stack = random() % 3;
      if (one_in(6)) l.tls = random() % 3;
      if (one_in(6)) l.modules = l.module_list[2].base = random() % 3;
      if (one_in(12)) l.program = random() % 2;
      if (one_in(12)) l.page_bytes = 65536;
    }
    std::vector<rank_layout> some = {r.all[0]};
    std::array<bool, 5> named{};
    bool words_differ = false;
    const auto zero = words_to_compare(r[0]);
    for (const rank_layout& one : r.all) {
      const auto reasons = reasons_to_name(one.is, zero);
      bool first = false;
      for (std::size_t i = 0; i < named.size(); ++i)
        if (reasons[i] && !named[i]) first = named[i] = true;
      if (first && one.rank != 0) some.push_back(one);
      words_differ |= words_to_compare(one.is) != zero;
    }
    EXPECT_LE(some.size(), 6u);
    EXPECT_EQ(compare_layouts(some), r.text());
    EXPECT_EQ(compare_main_stacks(some), compare_main_stacks(r.all));
    EXPECT_EQ(words_differ, !r.text().empty() || !compare_main_stacks(r.all).empty());
    differing += !r.text().empty();
  }
  EXPECT_GT(differing, 500);
}

// ---- starting anew: this program, executed with a launcher's variables

/// What the tests below execute. Alone it says what it finds and passes.
TEST(start, report) {
  static thread_local int of_thread;
  std::printf("main's output\n");
  open_output();
  int dummies = 0;
  for (char** e = environ; *e != nullptr; ++e) dummies += std::strstr(*e, "_GODWIT_PAD") != nullptr;
  const layout l = own_layout();
  std::printf("layout %p %p %p %lx %lx %lx %lx %lx\n", __builtin_frame_address(0),
              static_cast<void*>(&of_thread), reinterpret_cast<void*>(&own_layout), l.modules, l.program,
              l.tls, l.main_stack, l.heap_start);
  std::printf("state %u %s\ndummies %d\npersonality %x\nlauncher %d\n",
              static_cast<unsigned>(l.randomisation), l.detail, dummies,
              static_cast<unsigned>(personality(0xffffffff)), static_cast<int>(detect_launcher().what));
  if (const char* goose = std::getenv("GOOSE")) std::printf("goose %zu\n", std::strlen(goose));
  close_output();
  if (const char* again = std::getenv("SELF")) {
    unsetenv("GOOSE");
    std::fflush(stdout);
    open_output();
    const std::string command = std::string("unset SELF; \"") + again +
                                "\" --gtest_filter=start.report | sed -n 's/^launcher/child/p'";
    if (std::system(command.c_str()) != 0) std::abort();
    close_output();
  }
}

constexpr int cannot_execute = 111;

std::string own_file() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

support::outcome start(
    std::vector<std::string> variables, void (*before)() = [] {}) {
  const std::string path = own_file();
  for (char** e = environ; *e != nullptr; ++e)
    if (std::strstr(*e, "SAN_OPTIONS=") != nullptr) variables.emplace_back(*e);
  variables.emplace_back("PATH=/usr/bin:/bin");
  return support::run_child([&]() -> int {
    std::vector<char*> envp;
    for (auto& v : variables) envp.push_back(v.data());
    envp.push_back(nullptr);
    char filter[] = "--gtest_filter=start.report";
    char* argv[] = {const_cast<char*>(path.c_str()), filter, nullptr};
    before();
    execve(path.c_str(), argv, envp.data());
    _exit(cannot_execute);  // an emulated program cannot execute another
  });
}

std::vector<std::string> rank_of_three(int rank) {
  const std::string number = std::to_string(rank);
  return {"OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=" + number, "PMIX_NAMESPACE=77"};
}

std::string line(const support::outcome& o, const std::string& starts_with) {
  const auto at = ("\n" + o.out).find("\n" + starts_with);
  return at == std::string::npos ? "" : o.out.substr(at, o.out.find('\n', at) - at);
}

/// Personality is answered with @p error, and nothing else happens.
template <int Error>
void forbid_personality() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | Error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(cannot_execute);
}

bool kernel_randomises() {
  int value = 0;
  if (std::FILE* f = std::fopen("/proc/sys/kernel/randomize_va_space", "r")) {
    if (std::fscanf(f, "%d", &value) != 1) value = 0;
    std::fclose(f);
  }
  return value == 2 && (personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
}

#define SKIP_UNLESS_STARTED(outcome)                                        \
  do {                                                                      \
    if ((outcome).status == cannot_execute)                                 \
      GTEST_SKIP() << "programs cannot be executed, or not filtered, here"; \
  } while (false)

TEST(start_anew, ranks_agree_whatever_their_environment) {
  std::string first;
  for (int rank = 0; rank < 3; ++rank) {
    auto variables = rank_of_three(rank);
    variables.push_back("GOOSE=" + std::string(static_cast<std::size_t>(rank) * 9000, 'g'));
    for (int i = 0; i < rank * 11; ++i) variables.push_back("V" + std::to_string(i) + "=");
    const auto o = start(variables);
    SKIP_UNLESS_STARTED(o);
    ASSERT_EQ(o.status, 0) << show(o);
    if (line(o, "state") == "state 3 personality: Operation not permitted")
      GTEST_SKIP() << "a container, it seems";
    EXPECT_EQ(line(o, "state"), "state 1 ") << show(o);
    EXPECT_EQ(line(o, "dummies"), "dummies 0");
    EXPECT_EQ(line(o, "goose"), "goose " + std::to_string(rank * 9000));
    EXPECT_EQ(
        line(o, "personality"),
        "personality " + std::string((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0 ? "40000" : "0"));
    EXPECT_EQ(line(o, "main's output"), rank == 0 ? "main's output" : "") << show(o);
    if (rank == 0) first = line(o, "layout");
    EXPECT_EQ(line(o, "layout"), first);
  }
}

TEST(start_anew, only_ranks_of_several) {
  for (const auto& variables : {std::vector<std::string>{},
                                {"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0"},
                                {"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4"}}) {
    const auto o = start(variables), other = start(variables);
    SKIP_UNLESS_STARTED(o);
    EXPECT_EQ(line(o, "state"), "state 0 ") << show(o);
    EXPECT_EQ(line(o, "main's output"), "main's output") << show(o);
    if (kernel_randomises()) {
      EXPECT_NE(line(o, "layout"), line(other, "layout"));
    }
  }
}

TEST(start_anew, not_when_asked_not_to) {
  auto variables = rank_of_three(1);
  variables.emplace_back("GODWIT_RANDOMIZE=on");
  variables.emplace_back("GODWIT_OUTPUT=all");
  const auto o = start(variables);
  SKIP_UNLESS_STARTED(o);
  EXPECT_EQ(line(o, "state"), "state 2 GODWIT_RANDOMIZE is set") << show(o);
  EXPECT_EQ(line(o, "main's output"), "main's output") << show(o);
}

TEST(start_anew, goes_on_where_it_is_forbidden) {
  if (!kernel_randomises()) GTEST_SKIP() << "addresses are not random here";
  const auto o = start(rank_of_three(1), forbid_personality<EPERM>);
  SKIP_UNLESS_STARTED(o);
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_EQ(line(o, "state"), "state 3 personality: Operation not permitted") << show(o);
}

TEST(start_anew, once_even_if_it_is_in_vain) {
  if (!kernel_randomises()) GTEST_SKIP() << "addresses are not random here";
  const auto o = start(rank_of_three(1), forbid_personality<0>);  // says yes and does nothing
  SKIP_UNLESS_STARTED(o);
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_EQ(line(o, "state"), "state 3 personality: the switch did not outlast exec") << show(o);
  EXPECT_EQ(line(o, "dummies"), "dummies 0");
}

TEST(start_anew, programs_started_by_a_rank_are_no_ranks) {
  auto variables = rank_of_three(1);
  variables.push_back("SELF=" + own_file());
  const auto o = start(variables);
  SKIP_UNLESS_STARTED(o);
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_EQ(line(o, "launcher"), "launcher 1") << show(o);
  EXPECT_EQ(line(o, "child"), "child 0") << show(o);
  variables.emplace_back("GODWIT_RANDOMIZE=1");
  const auto random = start(variables);
  EXPECT_EQ(line(random, "launcher"), "launcher 1") << show(random);
  EXPECT_EQ(line(random, "child"), "child 0") << show(random);
}

}  // namespace
